// leeway_wire_docs writes the schema of all messages, as their descriptions say it, into the block
// ```fbs of a page, and digests of the samples' bytes into a file; or with --check fails where
// these differ. `./dev docs` and `./dev lint` run it, and a test.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/encoding/encoding.h"
#include "proto/encoding/fixed.h"
#include "proto/messages/messages.h"
#include "proto/testing/samples.h"
#include "runtime/base/random.h"

namespace leeway::proto {
namespace {

// The parts of a comment that are not empty.
std::string Said(std::vector<std::string> parts) {
  std::erase(parts, "");
  return absl::StrJoin(parts, "; ");
}
std::string Only(const char* when) { return *when == '\0' ? "" : absl::StrCat("only ", when); }

std::string Said(const Range& range) {
  std::string values = range.words;
  if (values.empty() && range.max == kAny && range.min > 0)
    values = absl::StrCat("at least ", range.min);
  if (values.empty() && range.max != kAny) values = absl::StrCat(range.min, " to ", range.max);
  return Said({values, Only(range.when)});
}
std::string Said(const Count& count) {
  const std::string entries = count.words;
  return Said({entries.empty() ? absl::StrCat(count.min, " to ", count.max, " entries") : entries,
               Only(count.when)});
}
std::string Said(const Utf8& text) { return absl::StrCat(text.min, " to ", text.max, " bytes"); }
std::string Said(const Fraction& fraction) {
  constexpr const char* kKinds[] = {"", "finite", "0 or more", "above 0"};
  return Said({kKinds[static_cast<int>(fraction.kind)], Only(fraction.when)});
}

template <class Wire>
std::string NumberName() {
  const std::string name = sizeof(Wire) == 1   ? "byte"
                           : sizeof(Wire) == 2 ? "short"
                           : sizeof(Wire) == 4 ? "int"
                                               : "long";
  return std::is_signed_v<Wire> ? name : absl::StrCat("u", name);
}

// The types whose schema has been written, and their text.
struct Schema {
  std::set<std::string, std::less<>> known;
  std::string text;
};
template <class M>
std::string Describe(Schema& schema, const std::string& comment);

// The visitor that writes a line for each field.
class FieldLines {
 public:
  explicit FieldLines(Schema& schema) : schema_(schema) {}
  const std::map<int, std::string>& lines() const { return lines_; }

  bool At(int field) {
    next_ = field;
    return true;
  }
  bool InOrder() { return true; }
  template <Number T, class Check = Range>
  bool operator()(const char* name, const T&, const Check& check = {}) {
    const std::string type = std::is_same_v<T, bool> ? "bool" : NumberName<WireOf<T, Check>>();
    return Add(name, check.unsaid == 0 ? type : absl::StrCat(type, " = ", check.unsaid),
               Said(static_cast<const Range&>(check)));
  }
  bool operator()(const char* name, double, const Fraction& check = {}) {
    return Add(name, check.unsaid == 0 ? "double" : absl::StrCat("double = ", check.unsaid),
               Said(check));
  }
  bool operator()(const char* name, const std::string&, const Utf8& check) {
    return Add(name, "string", Said(check));
  }
  bool operator()(const char* name, const std::string&, const Reason& check) {
    return Add(name, "string",
               absl::StrCat("up to ", check.max, " bytes, perhaps of several lines"));
  }
  bool operator()(const absl::Status&, const Result& check = {}) {
    return Add("code", "int", check.error ? "1 to 16" : "0 to 16") &&
           (*this)("reason", "", Reason{check.reason_max});
  }
  bool operator()(const char* name, const Consistency&) {
    return (*this)(name, "", Utf8{1, kConsistencyBytesMax});
  }
  bool operator()(const char* name, const std::map<std::string, double>&,
                  const Fraction& each = {}) {
    const std::string values = Said(each);
    return Add(name, absl::StrCat("[", Describe<Parameter>(schema_, ""), "]"),
               Said({Said(Count{0, kParametersMax}), values.empty() ? "" : values + " values"}));
  }
  bool operator()(const char* name, const std::vector<std::string>&, const Count& check,
                  const Utf8& each) {
    return Add(name, "[string]", absl::StrCat(Said(check), "; each ", Said(each)));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  bool operator()(const char* name, const std::vector<T>&, const Count& check,
                  const Fraction& each) {
    const std::string type = std::is_floating_point_v<T> ? "double" : NumberName<T>();
    const std::string values = Said(each);
    return Add(name, absl::StrCat("[", type, "]"),
               Said({Said(check), values.empty() ? "" : "each " + values}));
  }
  template <class M>
  bool operator()(const char* name, const std::vector<M>&, const Count& check) {
    return Add(name, absl::StrCat("[", Describe<M>(schema_, ""), "]"), Said(check));
  }
  template <Fixed M>
  bool operator()(const char* name, const M&) {
    return Add(name, Describe<M>(schema_, ""), "always there");
  }
  template <class M>
  bool operator()(const char* name, const M&, const Nested& check) {
    const std::string only = Only(check.when);
    return Add(name, Describe<M>(schema_, ""), only.empty() ? "always there" : only);
  }

 private:
  bool Add(absl::string_view name, const std::string& type, const std::string& comment) {
    constexpr std::size_t kCommentColumn = 32;
    std::string line = absl::StrCat("  ", name, ": ", type, ";");
    if (!comment.empty()) {
      line.resize(std::max(line.size() + 2, kCommentColumn), ' ');
      absl::StrAppend(&line, "// ", comment);
    }
    lines_[next_++] = line;
    return true;
  }

  Schema& schema_;
  std::map<int, std::string> lines_;
  int next_ = 0;
};

// Adds the type, behind those that it holds, unless it is there. Returns its name.
template <class M>
std::string Describe(Schema& schema, const std::string& comment) {
  const std::string name(TypeName<M>());
  if (!schema.known.insert(name).second) return name;
  FieldLines fields(schema);
  const M m;
  if constexpr (Fixed<M>) {
    M::FixedFields(fields, m);
  } else {
    FieldsOf(fields, m);
  }
  absl::StrAppend(&schema.text, Fixed<M> ? "struct " : "table ", name, " {", comment, "\n");
  for (const auto& [number, line] : fields.lines()) absl::StrAppend(&schema.text, line, "\n");
  absl::StrAppend(&schema.text, "}\n");
  return name;
}

std::string SchemaOfAll() {
  Schema schema;
  std::vector<std::string> names;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto add = [&]<class M>(std::size_t type, const M*) {
      names.push_back(Describe<M>(schema, absl::StrCat("  // message ", type)));
    };
    (add(i + 1, static_cast<MessageOf<i + 1>*>(nullptr)), ...);
  }
  (std::make_index_sequence<kMessageTypes - 1>());
  return absl::StrCat("namespace leeway.wire;\n", schema.text, "union Body {\n  ",
                      absl::StrJoin(names, ",\n  "),
                      "\n}\ntable Header { body: Body; }\nroot_type Header;\nfile_identifier \"",
                      kHeaderIdentifier, "\";\n");
}

// A digest of the bytes of all samples of each type. It may differ from an older release's only
// where samples or their fields have been added, for the bytes of a message never change.
std::string Digests() {
  std::vector<std::string> headers(kMessageTypes);
  for (const Sample& sample : AllSamples()) {
    std::string& all = headers[sample.message.index()];
    if (all.empty()) all = absl::StrCat(NameOf(sample.message), " ");
    absl::StrAppend(&all, Encode(sample.message).text());
  }
  std::string text;
  for (std::size_t type = 1; type < headers.size(); ++type) {
    absl::StrAppend(&text, headers[type].substr(0, headers[type].find(' ')), " ",
                    absl::Hex(runtime::StableHash(headers[type])), "\n");
  }
  return text;
}

std::string Read(const std::string& file) {
  std::ifstream in(file);
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// `page` with the schema in its block; empty if it has none.
std::string WithSchema(std::string page) {
  const std::string fence = "```fbs\n";
  const std::size_t begin = page.find(fence);
  const std::size_t end = begin == page.npos ? begin : page.find("```", begin + fence.size());
  if (end == page.npos) return "";
  return page.replace(begin + fence.size(), end - begin - fence.size(), SchemaOfAll());
}

// False if the file differs, or after it has been written if it cannot be.
bool WriteOrCheck(const std::string& file, const std::string& text, bool check) {
  if (Read(file) == text) return true;
  if (!check && !text.empty()) return static_cast<bool>(std::ofstream(file) << text << std::flush);
  std::cerr << file << ": it is not what the messages say; run ./dev docs\n";
  return false;
}

}  // namespace
}  // namespace leeway::proto

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::string(argv[1]) == "--check";
  if (argc - check != 3) {
    std::cerr << "usage: leeway_wire_docs [--check] PAGE DIGESTS\n";
    return 2;
  }
  const std::string page = argv[argc - 2], digests = argv[argc - 1];
  using namespace leeway::proto;
  const bool schema = WriteOrCheck(page, WithSchema(Read(page)), check);
  return WriteOrCheck(digests, Digests(), check) && schema ? 0 : 1;
}
