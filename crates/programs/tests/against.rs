//! Each reader against the program whose files it reads.

mod against {
    mod boot;
    mod jvm;
    mod mariadb;
    mod postgres;
    mod units;
}
