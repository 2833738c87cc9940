#include "qualify/sandbox_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace anvil::qualify {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

constexpr int kRefused[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_pidfd_send_signal,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_memfd_create,
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_ftruncate,
    SYS_setrlimit,
    SYS_setxattr,
    SYS_utimensat,
    SYS_setuid,
    SYS_setgid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_execveat,
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
    SYS_creat,
    SYS_unlink,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
#endif
};

class Program {
 public:
  void statement(uint16_t code, uint32_t k) { add(code, k, 0, 0); }
  void jump(uint16_t code, uint32_t k, uint8_t yes, uint8_t no) { add(code, k, yes, no); }

  void load_number() { load(offsetof(seccomp_data, nr)); }
  void load(size_t offset) { statement(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  // The low half of an argument: flags fit into it on the little-endian machines named above.
  void load_argument(size_t index) {
    load(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
  }
  void answer(int error) {
    statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  }
  void refuse(int number, int error) {
    jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
    answer(error);
  }
  // Refuses `number` when `mask` meets the argument (`any`), or when it does not. The accumulator
  // holds the number before and after.
  void refuse_by_flags(int number, size_t argument, uint32_t mask, bool any, int error) {
    jump(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 4);
    load_argument(argument);
    jump(BPF_JMP | BPF_JSET | BPF_K, mask, any ? 0 : 1, any ? 1 : 0);
    answer(error);
    load_number();
  }

  std::vector<sock_filter> take() { return std::move(code_); }

 private:
  void add(uint16_t code, uint32_t k, uint8_t yes, uint8_t no) {
    code_.push_back(sock_filter{code, yes, no, k});
  }
  std::vector<sock_filter> code_;
};

}  // namespace

std::vector<sock_filter> system_call_filter() {
  if (kArchitecture == 0) return {};
  Program program;
  program.load(offsetof(seccomp_data, arch));
  program.jump(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  program.statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  program.load_number();
#if defined(__x86_64__)
  // The x32 numbers would pass by the comparisons below.
  program.jump(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1);
  program.answer(ENOSYS);
#endif
  for (const int number : kRefused) program.refuse(number, EPERM);
  program.refuse(SYS_clone3, ENOSYS);  // its flags lie in memory; libc then falls back to clone
  program.refuse(SYS_openat2, ENOSYS);
  constexpr uint32_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  program.refuse_by_flags(SYS_openat, 2, kWrites, true, EACCES);
#if defined(__x86_64__)
  program.refuse_by_flags(SYS_open, 1, kWrites, true, EACCES);
#endif
  program.refuse_by_flags(SYS_clone, 0, CLONE_THREAD, false, EPERM);
  program.refuse_by_flags(SYS_prlimit64, 2, 0xFFFFFFFFu, true, EPERM);
  program.statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return program.take();
}

bool load_filter(const std::vector<sock_filter>& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool restrict_files() {
  landlock_ruleset_attr rules{};
  // The rights of the first Landlock version, which every later one knows.
  rules.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  const auto set = static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0));
  if (set < 0) return false;
  landlock_path_beneath_attr usr{};
  usr.allowed_access =
      LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  usr.parent_fd = open("/usr", O_PATH | O_CLOEXEC);
  return usr.parent_fd >= 0 &&
         syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &usr, 0) == 0 &&
         prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_landlock_restrict_self, set, 0) == 0;
}

}  // namespace anvil::qualify
