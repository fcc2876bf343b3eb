use proptest::prelude::*;

use super::{arguments, line};

fn clean(command: &str) -> (String, Vec<String>) {
    let words: Vec<String> = command.split('|').map(str::to_owned).collect();
    let (kept, taken) = arguments(&words);
    (kept.join("|"), taken)
}

#[test]
fn passwords_in_arguments_are_taken_out_and_named() {
    for (command, kept, taken) in [
        ("app|--password=s3cret|-x", "app|--password=<redacted>|-x", "--password"),
        (
            "app|--db-password|s3cret",
            "app|--db-password|<redacted>",
            "--db-password",
        ),
        (
            "java|-Ddb.password=s3cret",
            "java|-Ddb.password=<redacted>",
            "-Ddb.password",
        ),
        ("/usr/bin/mysqldump|-ps3cret", "/usr/bin/mysqldump|-p<redacted>", "-p"),
        ("redis-cli|-a|s3cret", "redis-cli|-a|<redacted>", "-a"),
        ("curl|-u|me:s3cret", "curl|-u|me:<redacted>", "-u"),
        (
            "app|postgres://me:s3cret@db/x",
            "app|postgres://me:<redacted>@db/x",
            "an argument",
        ),
        ("app|https://s3cret@db", "app|https://<redacted>@db", "an argument"),
        (
            "psql|host=db password='s3 cret' user=x",
            "psql|host=db password='<redacted>' user=x",
            "an argument",
        ),
        (
            "app|{\"api_key\": \"s3cret\", \"n\": 1}",
            "app|{\"api_key\": \"<redacted>\", \"n\": 1}",
            "an argument",
        ),
        (
            "qemu|-object|secret,id=a,data=s3cret",
            "qemu|-object|secret,id=a,data=<redacted>",
            "-object",
        ),
        ("app|--x|ghp_s3cretabcdefghijk", "app|--x|<redacted>", "--x"),
        (
            "mariadbd|--wsrep_sst_auth=sst:s3cret",
            "mariadbd|--wsrep_sst_auth=<redacted>",
            "--wsrep_sst_auth",
        ),
        (
            "qemu|-drive|file=rbd:pool/img:id=admin:key=s3cret==:mon=a",
            "qemu|-drive|file=rbd:pool/img:id=admin:key=<redacted>",
            "-drive",
        ),
        (
            "qemu|-fw_cfg|name=opt/com.coreos/config,string={\"a\": \"s3, cret\"}",
            "qemu|-fw_cfg|name=opt/com.coreos/config,string=<redacted>",
            "-fw_cfg",
        ),
        (
            "postgres|-c|archive_command=curl -H 'Authorization: Bearer s3cret' x",
            "postgres|-c|archive_command=curl -H 'Authorization: Bearer <redacted>' x",
            "-c",
        ),
        (
            "postgres|-c|restore_command=curl -u me:s3cret x",
            "postgres|-c|restore_command=curl -u me:<redacted> x",
            "-c",
        ),
        (
            "postgres|-c|restore_command=curl -u 'me:s3 cret' x",
            "postgres|-c|restore_command=curl -u 'me:<redacted>' x",
            "-c",
        ),
        (
            "java|-Dsasl.jaas.config=\"X username=\\\"u\\\" password=\\\"s3cret\\\";\"",
            "java|-Dsasl.jaas.config=\"X username=\\\"u\\\" password=\\\"<redacted>\\\";\"",
            "-Dsasl.jaas.config",
        ),
        (
            "app|password=\"s3\\\"cret\"",
            "app|password=\"<redacted>\"",
            "an argument",
        ),
        (
            "java|-Dnewrelic.config.license_key=s3cret",
            "java|-Dnewrelic.config.license_key=<redacted>",
            "-Dnewrelic.config.license_key",
        ),
        (
            "java|-Ddd.api.key=s3cret",
            "java|-Ddd.api.key=<redacted>",
            "-Ddd.api.key",
        ),
        (
            "java|-Dconnection.pwd=s3cret",
            "java|-Dconnection.pwd=<redacted>",
            "-Dconnection.pwd",
        ),
        (
            "java|-Dappinsights.instrumentationkey=s3cret",
            "java|-Dappinsights.instrumentationkey=<redacted>",
            "-Dappinsights.instrumentationkey",
        ),
    ] {
        assert_eq!(clean(command), (kept.to_owned(), vec![taken.to_owned()]), "{command}");
    }
}

#[test]
fn secrets_in_commands_within_an_argument_are_taken_out() {
    for (from, to) in [
        (
            "qemu|-fw_cfg|string=s3cret,name=opt/x",
            "qemu|-fw_cfg|string=<redacted>",
        ),
        ("java|-Dhttp.proxyPass=s3cret", "java|-Dhttp.proxyPass=<redacted>"),
        (
            "x|jdbc:sqlserver://h;user=a;password={s3}}cret;L};a=b",
            "x|jdbc:sqlserver://h;user=a;password={<redacted>};a=b",
        ),
        (
            "x|-c|curl -H 'authorization: bearer s3cret' x",
            "x|-c|curl -H 'authorization: bearer <redacted>' x",
        ),
        (
            "x|-c|curl -H 'Authorization: token s3cret' x",
            "x|-c|curl -H 'Authorization: token <redacted>' x",
        ),
        (
            "x|-c|curl -H 'Authorization: Digest username=\"me\", response=\"s3cret\"' x",
            "x|-c|curl -H 'Authorization: Digest <redacted>' x",
        ),
        (
            "x|{\"Proxy-Authorization\": \"Bearer s3cret\", \"n\": 1}",
            "x|{\"Proxy-Authorization\": \"Bearer <redacted>\", \"n\": 1}",
        ),
        ("curl|-H|Authorization: s3cret", "curl|-H|Authorization: <redacted>"),
        ("x|-c|curl -u  me:s3cret x", "x|-c|curl -u  me:<redacted> x"),
        ("x|-c|curl -ume:s3cret x", "x|-c|curl -ume:<redacted> x"),
        ("sudo|-n|curl|--user=me:s3cret", "sudo|-n|curl|--user=me:<redacted>"),
        ("x|-c|mysql -uroot -ps3cret", "x|-c|mysql -uroot -p<redacted>"),
        (
            "sh|-c|cd /\ncurl -u me:s3cret x\n",
            "sh|-c|cd /\ncurl -u me:<redacted> x\n",
        ),
    ] {
        assert_eq!(clean(from).0, to);
    }
    let script = "echo s3cret | sudo -S x; curl -H \"Authorization: Basic $(echo \"me:s3cret\" | base64)\" x";
    assert_eq!(
        arguments(&["sh", "-c", script].map(str::to_owned)).0[2],
        "echo <redacted> | sudo -S x; curl -H \"Authorization: Basic <redacted>\" x"
    );
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for command in [
        "postgres|-c|archive_command=date -u +%H:%M",
        "docker|run|--user|1000:1000|-u|app:app|img",
        "sh|-c|docker run --name mysql -p 3306:3306 --user me:me mysql",
        "sh|-c|echo Basic settings",
        "sh|-c|curl -H \"Authorization: Bearer $(cat /run/tok)\" x",
        "sh|-c|curl -u me:$PASSWORD -H 'Authorization: Bearer ${TOKEN}' x",
        "sh|-c|app --password=$(cat /run/pw) x",
        "curl|--user-agent|a:b|--user-agent=a:b",
        "app|authorization: enabled",
        "qemu|-name|mysql|-pidfile|/run/x",
        "java|-Dcompass=x|-Dx.bypass=true",
    ] {
        assert_eq!(clean(command), (command.to_owned(), vec![]));
    }
}

#[test]
fn what_decides_page_sizes_stays_as_it_is() {
    for command in [
        "java|-Xmx4g|-XX:+UseLargePages|-XX:LargePageSizeInBytes=2m|-cp|/a:/b|Main",
        "postgres|-D|/var/lib/postgresql|-c|config_file=/etc/postgresql/15/main/postgresql.conf",
        "qemu-system-x86_64|-m|4G|-object|memory-backend-file,id=mem,mem-path=/dev/hugepages,size=4G,prealloc=on",
        "firecracker|--api-sock|/run/fc.sock|--config-file|/etc/fc.json",
        "testpmd|-l|0-3|--huge-dir|/dev/hugepages|--socket-mem=1024,0|-p|0x3",
        "redis-server|*:6379",
    ] {
        assert_eq!(clean(command), (command.to_owned(), vec![]));
    }
}

#[test]
fn lines_of_configuration_lose_their_secrets_only() {
    for (from, to) in [
        ("requirepass s3cret", "requirepass <redacted>"),
        (
            "x; mysql -uroot -ps3cret -e 'a'; y -pz",
            "x; mysql -uroot -p<redacted> -e 'a'; y -pz",
        ),
        ("sshpass -p 's3 cret' ssh x", "sshpass -p '<redacted>' ssh x"),
        ("sh -c 'mysql -ps3cret' > /x y", "sh -c 'mysql -p<redacted>' > /x y"),
        ("mysql -p's3 cret' x; y", "mysql -p<redacted> x; y"),
        ("mysql -p's3cret'; y", "mysql -p<redacted>; y"),
        ("curl -u me:s3cret http://x", "curl -u me:<redacted> http://x"),
        (
            "@reboot echo s3cret | sudo -S sysctl -w vm.nr_hugepages=8",
            "@reboot echo <redacted> | sudo -S sysctl -w vm.nr_hugepages=8",
        ),
        (
            "sudo -S <<< s3cret tee /proc/sys/vm/nr_hugepages",
            "sudo -S <<< <redacted> tee /proc/sys/vm/nr_hugepages",
        ),
        (
            "echo 8 | sudo tee /proc/sys/vm/nr_hugepages",
            "echo 8 | sudo tee /proc/sys/vm/nr_hugepages",
        ),
        ("--db-password s3cret", "--db-password <redacted>"),
        ("postgres - memlock 8388608", "postgres - memlock 8388608"),
        ("password = s3cret", "password = <redacted>"),
        (
            "primary_conninfo = 'host=a password=s3cret'",
            "primary_conninfo = 'host=a password=<redacted>'",
        ),
        ("huge_pages = try # ask first", "huge_pages = try # ask first"),
        ("vm.nr_hugepages=512", "vm.nr_hugepages=512"),
    ] {
        assert_eq!(line(from), to);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_password_never_survives_and_nothing_panics(
        before in "[a-z =:,'\"/@é-]{0,12}",
        name in "(--|-D|)[a-z.]{0,6}(password|TOKEN|api_key|Secret)",
        sign in "(=|: |=\"|:')",
    ) {
        let argument = format!("{before} {name}{sign}hunter2");
        let (kept, _) = arguments(&["app".to_owned(), argument.clone()]);
        prop_assert!(!kept.concat().contains("hunter2"), "{argument} -> {kept:?}");
        prop_assert!(!line(&argument).contains("hunter2"), "{argument}");
    }
}
