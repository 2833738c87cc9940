#include "host/doctor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/files.h"
#include "host/testing/fake_gpu_probe.h"

namespace anvil::host {
namespace {

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/anvil-doctor-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
    examination_.path = folder_;
    examination_.container_sockets = {folder_ + "/none.sock"};
    examination_.state_folder = folder_ + "/state";
    examination_.models_folder = folder_ + "/models";
    examination_.gpus = &probe_;
    examination_.platform = "bare";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void install(const std::string& program, mode_t mode = 0755) {
    const std::string file = folder_ + "/" + program;
    std::ofstream(file) << "#!/bin/sh\n";
    chmod(file.c_str(), mode);
  }

  // The finding with that id, as "VERDICT what"; "" if there is none.
  std::string look(const std::string& id) {
    for (const Finding& finding : examine(examination_)) {
      EXPECT_FALSE(finding.what.empty());
      EXPECT_EQ(finding.verdict == Finding::Verdict::kOk, finding.remedy.empty()) << finding.id;
      if (finding.id == id) return std::string(name(finding.verdict)) + " " + finding.what;
    }
    return "";
  }

  std::string folder_;
  FakeGpuProbe probe_;
  Examination examination_;
};

// A daemon on a unix socket that gives one answer to one connection.
class OneAnswer {
 public:
  OneAnswer(const std::string& path, std::string answer) : path_(path) {
    fd_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    listen(fd_.get(), 4);
    if (answer.empty()) return;  // listens, and never answers
    thread_ = std::thread([this, answer = std::move(answer)] {
      const base::Fd peer(accept(fd_.get(), nullptr, nullptr));
      char request[1024];
      const auto got = recv(peer.get(), request, sizeof request, 0);
      request_.assign(request, got > 0 ? static_cast<size_t>(got) : 0);
      (void)!write(peer.get(), answer.data(), answer.size());
    });
  }
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
  }
  std::string request() {
    if (thread_.joinable()) thread_.join();
    return request_;
  }

 private:
  std::string path_;
  base::Fd fd_;
  std::string request_;
  std::thread thread_;
};

TEST_F(DoctorTest, FindsEnginesOnThePath) {
  EXPECT_EQ(look("engine"), "WARN no llama-server, vllm or sglang on PATH");
  EXPECT_TRUE(look("python").starts_with("WARN"));
  install("llama-server");
  install("vllm", 0644);
  install("python3");
  EXPECT_EQ(look("engine"), "");
  EXPECT_EQ(look("engine.llama-server"),
            "OK llama.cpp can be started: " + folder_ + "/llama-server");
  EXPECT_EQ(look("engine.vllm"), "") << "not executable";
  EXPECT_TRUE(look("python").starts_with("OK"));
}

TEST_F(DoctorTest, LooksThroughPathLists) {
  install("tool");
  EXPECT_EQ(find_program("/nowhere::" + folder_, "tool"), folder_ + "/tool");
  EXPECT_EQ(find_program("", "tool"), "");
  EXPECT_EQ(find_program(folder_, "other"), "");
  std::filesystem::create_directory(folder_ + "/folder");
  EXPECT_EQ(find_program(folder_, "folder"), "");
}

TEST_F(DoctorTest, AsksContainerDaemons) {
  EXPECT_TRUE(look("container").starts_with("OK no container daemon"));
  install("docker");
  EXPECT_TRUE(look("container").starts_with("WARN docker is installed"));

  const std::string path = folder_ + "/d.sock";
  examination_.container_sockets = {path};
  OneAnswer daemon(path,
                   "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n"
                   "Content-Length: 2\r\n\r\nOK");
  EXPECT_EQ(look("container"), "OK Docker answers at " + path + ", API 1.41");
  EXPECT_TRUE(daemon.request().starts_with("GET /_ping HTTP/1.1\r\n"));
}

TEST_F(DoctorTest, TellsDaemonFailuresApart) {
  using State = DaemonPing::State;
  EXPECT_EQ(ping_daemon(folder_ + "/none.sock", kSecond).state, State::kNoSocket);
  EXPECT_EQ(ping_daemon(std::string(500, 'x'), kSecond).state, State::kNoSocket);
  { OneAnswer dead(folder_ + "/dead.sock", ""); }
  EXPECT_EQ(ping_daemon(folder_ + "/dead.sock", kSecond).state, State::kRefused);
  OneAnswer silent(folder_ + "/silent.sock", "");
  EXPECT_EQ(ping_daemon(folder_ + "/silent.sock", kMillisecond).state, State::kSilent);
  OneAnswer other(folder_ + "/other.sock", "220 mail.example.org ESMTP\r\n");
  EXPECT_EQ(ping_daemon(folder_ + "/other.sock", 10 * kSecond).state, State::kNotDaemon);
  OneAnswer error(folder_ + "/error.sock", "HTTP/1.1 500 Oops\r\n\r\n");
  EXPECT_EQ(ping_daemon(folder_ + "/error.sock", 10 * kSecond).state, State::kNotDaemon);
  OneAnswer podman(folder_ + "/p.sock",
                   "HTTP/1.1 200 OK\r\nserver: Libpod/4.3.1 (linux)\r\napi-version: 1.41\r\n\r\n");
  const DaemonPing ping = ping_daemon(folder_ + "/p.sock", 10 * kSecond);
  EXPECT_EQ(ping.state, State::kOk);
  EXPECT_EQ(ping.server, "Libpod");
  EXPECT_EQ(ping.api_version, "1.41");

  examination_.container_sockets = {folder_ + "/dead.sock"};
  EXPECT_TRUE(look("container").starts_with("WARN nothing listens"));
}

TEST_F(DoctorTest, JudgesGpus) {
  EXPECT_TRUE(look("gpu.0").starts_with("OK NVIDIA H200 (sm_90), "));
  probe_.gpus[1].processes = {{42, 1000}};
  EXPECT_TRUE(look("gpu.1").starts_with("WARN"));
  probe_.gpus[0].mig = true;
  EXPECT_NE(look("gpu.0").find("MIG"), std::string::npos);
  probe_.gpus.clear();
  probe_.absent = "no driver";
  EXPECT_NE(look("gpu").find("no driver"), std::string::npos);
}

TEST_F(DoctorTest, JudgesFolders) {
  EXPECT_NE(look("disk.state").find(folder_ + "/state has "), std::string::npos)
      << "a folder that does not exist yet is judged by its parent";
  EXPECT_FALSE(base::exists(folder_ + "/state")) << "nothing is created";
  std::ofstream(folder_ + "/file") << "x";
  examination_.models_folder = folder_ + "/file";
  EXPECT_TRUE(look("disk.models").starts_with("FAIL"));
}

TEST_F(DoctorTest, GivesPlatformHints) {
  EXPECT_TRUE(look("platform").starts_with("OK"));
  examination_.platform = "wsl2";
  EXPECT_TRUE(look("platform").starts_with("WARN this is WSL2"));
  examination_.platform = "container";
  EXPECT_TRUE(look("platform").starts_with("OK this is a container"));
}

TEST_F(DoctorTest, LooksAtEverySubject) {
  for (const char* id : {"memory", "shm", "disk.state", "disk.models", "clock.source", "clock.sync",
                         "limit.nofile", "platform"}) {
    EXPECT_NE(look(id), "") << id;
  }
  const Finding finding = {"x", Finding::Verdict::kFail, "seen", "do"};
  EXPECT_EQ(to_json(finding),
            Json::parse(R"({"id":"x","verdict":"FAIL","what":"seen","remedy":"do"})"));
}

}  // namespace
}  // namespace anvil::host
