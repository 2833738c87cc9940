#include "base/version.h"

#include <elf.h>
#include <link.h>

#include <cstring>

namespace anvil::base {

namespace {
int find_build_id(dl_phdr_info* info, size_t, void* out) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* note_name = at + sizeof note;
      const char* bytes = note_name + ((note.n_namesz + 3u) & ~3u);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(note_name, "GNU", 4) == 0) {
        static constexpr char kDigits[] = "0123456789abcdef";
        auto* text = static_cast<std::string*>(out);
        for (uint32_t k = 0; k < note.n_descsz; ++k) {
          const auto byte = static_cast<unsigned char>(bytes[k]);
          *text += kDigits[byte >> 4];
          *text += kDigits[byte & 15];
        }
        return 1;
      }
      at = bytes + ((note.n_descsz + 3u) & ~3u);
    }
  }
  return 1;  // the first object is the program itself; libraries have build ids of their own
}
}  // namespace

std::string version() {
  return ANVIL_VERSION;
}

std::string build_id() {
  std::string text;
  dl_iterate_phdr(find_build_id, &text);
  return text.empty() ? "none" : text;
}

}  // namespace anvil::base
