use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn a_file_that_is_no_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = |cert: &str| Tls {
        cert_file: folder.path().join(cert),
        key_file: folder.path().join("key"),
        configured: false,
        plain: true,
    };
    let error = tls("none").check().expect_err("nothing is there").to_string();
    assert_eq!(
        error,
        format!(
            "cannot read the TLS certificate {} (truetwin tls make makes one)",
            folder.path().join("none").display()
        )
    );
    let error = Tls { configured: true, ..tls("none") }.check().expect_err("nothing is there").to_string();
    assert!(error.contains("put it there, or leave both out"), "tls make would not write it there: {error}");
    assert!(tls("").check().is_err(), "a folder is no certificate");
}

/// A certificate for this name until that year, and its key.
fn made(name: &str, year: i32) -> (String, String) {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn write(tls: &Tls, (cert, key): (String, String)) {
    std::fs::write(&tls.cert_file, cert).expect("it is written");
    std::fs::write(&tls.key_file, key).expect("it is written");
    std::fs::set_permissions(&tls.key_file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
}

/// The files of a certificate in this folder.
fn within(folder: &Path) -> Tls {
    Tls { cert_file: folder.join("cert"), key_file: folder.join("key"), configured: false, plain: false }
}

#[test]
fn a_chain_is_read_its_own_certificate_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = within(folder.path());
    let ((own, key), (next, _)) = (made("hub", 2031), made("authority", 2051));
    write(&tls, (format!("# hub\n{own}\n{next}"), key));
    assert_eq!(tls.check().expect("it is good"), Some(1_924_992_000));
}

#[test]
fn a_certificate_that_could_not_be_read_when_it_was_renewed_is_taken_once_it_can() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = within(folder.path());
    write(&tls, made("hub", 2031));
    let certificate = Certificate::read(tls.clone()).expect("it is good");
    let short = |tls: &Tls| {
        let (path, source) = (tls.cert_file.clone(), io::Error::other("too many open files"));
        Err(TlsError::Unreadable { what: "certificate", path, configured: false, source })
    };
    let unasked = |_: &Tls| panic!("it is not read");
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    assert!(!certificate.look(at(0), unasked).expect("nothing has changed"));
    std::fs::remove_file(&tls.cert_file).expect("it was there"); // another file, whatever the clock of the disk
    write(&tls, {
        let (cert, key) = made("hub", 2041);
        (format!("# renewed\n{cert}"), key)
    });
    assert!(certificate.look(at(0), short).is_err(), "it is said");
    assert!(!certificate.look(at(999), unasked).expect("not so soon"));
    assert!(!certificate.look(at(1000), short).expect("said once"));
    assert!(!certificate.look(at(1999), unasked).expect("not so soon"));
    assert_eq!(certificate.expires_s(), 1_924_992_000, "the one before stays");
    assert!(certificate.look(at(2000), Tls::load).expect("it can be read"));
    assert_eq!(certificate.expires_s(), 2_240_611_200);
    assert!(!certificate.look(at(9000), unasked).expect("nothing has changed"));
}
