use super::*;

#[test]
fn a_file_that_is_no_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls =
        |cert: &str| Tls { cert_file: folder.path().join(cert), key_file: folder.path().join("key"), plain: true };
    let error = tls("none").check().expect_err("nothing is there").to_string();
    assert_eq!(
        error,
        format!(
            "cannot read the TLS certificate {} (truetwin tls make makes one)",
            folder.path().join("none").display()
        )
    );
    assert!(tls("").check().is_err(), "a folder is no certificate");
}

#[test]
fn a_chain_is_read_its_own_certificate_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = |name: &str, year| {
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
    };
    let ((own, key), (next, _)) = (made("hub", 2031), made("authority", 2051));
    let (cert_file, key_file) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert_file, format!("# hub\n{own}\n{next}")).expect("it is written");
    std::fs::write(&key_file, key).expect("it is written");
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let tls = Tls { cert_file, key_file, plain: false };
    assert_eq!(tls.check().expect("it is good"), Some(1_924_992_000));
}
