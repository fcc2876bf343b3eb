create table item(id integer primary key, key integer, name text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)
insert into item select i, (i * 7919) % 400009, printf('item %d of the catalogue', i) from n;
create index item_key on item(key);
select sum(length(b.name)) from item a join item b on b.key = (a.key * 31) % 400009;
