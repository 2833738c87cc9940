#pragma once

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

namespace anvil::scripted {

// A fresh self-signed certificate for 127.0.0.1 and localhost, as PEM files that live as long as
// the object.
class TestCertificate {
 public:
  TestCertificate() {
    char folder[] = "/tmp/anvil-certificate-XXXXXX";
    folder_ = mkdtemp(folder) ? folder : "";
    EXPECT_FALSE(folder_.empty());
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    X509* certificate = made.get();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key.get());
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    EXPECT_GT(X509_sign(certificate, key.get(), EVP_sha256()), 0);
    write(certificate_path(), [&](FILE* file) { PEM_write_X509(file, certificate); });
    write(key_path(), [&](FILE* file) {
      PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  ~TestCertificate() {
    unlink(certificate_path().c_str());
    unlink(key_path().c_str());
    rmdir(folder_.c_str());
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  std::string certificate_path() const { return folder_ + "/certificate.pem"; }
  std::string key_path() const { return folder_ + "/key.pem"; }

 private:
  template <class F>
  static void write(const std::string& path, F f) {
    FILE* file = fopen(path.c_str(), "w");
    ASSERT_TRUE(file) << path;
    f(file);
    fclose(file);
  }

  std::string folder_;
};

}  // namespace anvil::scripted
