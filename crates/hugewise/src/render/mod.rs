//! Results in the forms a reader can want; nothing here prints or looks at the machine.

pub mod axis;
pub mod checkup;
pub mod cores;
pub mod doctor;
pub mod figure;
pub mod guest;
pub mod guest_costs;
pub mod guest_tlb;
pub mod heat;
pub mod heatmap;
pub mod inventory;
pub mod kernelops;
pub mod latency;
pub mod look;
pub mod picture;
pub mod provenance;
pub mod ps;
pub mod reach;
pub mod report;
pub mod sheet;
pub mod terminal;
pub mod tlb;
pub mod tone;
pub mod vms;
