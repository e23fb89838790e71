#include "proto/testing/violations.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/encoding/fixed.h"
#include "proto/encoding/read_fields.h"
#include "proto/messages/fields.h"

namespace leeway::proto {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Lists that may be longer are not made too long.
constexpr std::uint64_t kEntriesMax = 1 << 21;

// The visitor that violates check number `chosen`.
class Violator {
 public:
  explicit Violator(std::size_t chosen) : chosen_(chosen) {}
  bool done() const { return seen_ > chosen_; }
  bool allowed() const { return allowed_; }
  const std::string& says() const { return says_; }

  bool At(int) { return true; }
  bool InOrder() { return true; }
  template <Number T, class Check = Range>
  bool operator()(const char* name, T& value, const Check& check = {}) {
    using Wire = WireOf<T, Check>;
    if (std::is_signed_v<Wire> || check.lenient) return true;
    const std::uint64_t least = check.least(), most = check.most();
    const auto set = [&](std::uint64_t to) {
      value = static_cast<T>(to);
      return OutOfRange(to, least, most);
    };
    const std::uint64_t largest = std::is_same_v<T, bool> ? 1 : std::numeric_limits<Wire>::max();
    if (most < largest && Choose()) Says("", name, set(most + 1));
    if (least > 0 && Choose()) Says("", name, set(least - 1));
    if ((most < largest || least > 0) && Choose()) Allow(name, set(most < largest ? most : least));
    if (least > 0 && Choose()) Allow(name, set(least));
    return true;
  }
  bool operator()(const char* name, double& value, const Fraction& check = {}) {
    if (!check.present) return true;
    const auto set = [&](double to, const char* may_be) {
      Says("", name, absl::StrCat(" is ", value = to, ", may be ", may_be));
    };
    if (!check.applies) {
      if (Choose()) set(check.unsaid + 1, absl::StrCat(check.unsaid).c_str());
      return true;
    }
    using Kind = Fraction::Kind;
    if (check.kind == Kind::kAnything) return true;
    const char* const may_be = check.kind == Kind::kFinite     ? "finite"
                               : check.kind == Kind::kPositive ? "above 0"
                                                               : "0 or more";
    if (Choose()) set(kNaN, may_be);
    if (Choose()) set(HUGE_VAL, may_be);
    if (check.kind != Kind::kFinite && Choose()) set(-0.5, may_be);
    if (check.kind == Kind::kPositive && Choose()) set(0, may_be);
    if (check.kind == Kind::kNotNegative && Choose()) Allow(name, absl::StrCat(" is ", value = 0));
    return true;
  }
  bool operator()(const char* name, std::string& text, const Utf8& check) {
    if (check.min > 0 && Choose()) SetText(name, "", check.min, check.max, &text);
    if (Choose()) SetText(name, std::string(check.max + 1, 'x'), check.min, check.max, &text);
    if (Choose()) AllowText(name, check.min, check.max, &text);
    if (Choose()) SetUnclean(name, "a\nb", "a\\nb", &text);
    return SetUnclean(name, &text);
  }
  bool operator()(const char* name, std::string& text, const Reason& check) {
    if (Choose()) SetText(name, std::string(check.max + 1, 'x'), 0, check.max, &text);
    if (Choose()) AllowText(name, 0, check.max, &text);
    return SetUnclean(name, &text);
  }
  bool operator()(absl::Status& status, const Result& check = {}) {
    if (check.error && Choose()) {
      status = absl::OkStatus();
      Says("", "code", " is 0 (OK), may be that of an error");
    }
    if (status.ok()) return true;
    std::string reason(status.message());
    (*this)("reason", reason, Reason{check.reason_max});
    status = absl::Status(status.code(), reason);
    return true;
  }
  bool operator()(const char*, Consistency&) { return true; }
  bool operator()(const char* name, std::map<std::string, double>& all, const Fraction& each = {}) {
    if (Choose()) {
      for (std::size_t i = 0; all.size() <= kParametersMax; ++i) all[absl::StrCat("p", i)] = 1;
      Says("number of ", name, OutOfRange(all.size(), 0, kParametersMax));
    }
    if (all.empty() || done()) return true;
    Parameter first{all.begin()->first, all.begin()->second};
    Enter(name, 0, [&] { first.Fields(*this, first) && (*this)("value", first.value, each); });
    if (done()) all = {{first.name, first.value}};
    return true;
  }
  bool operator()(const char* name, std::vector<std::string>& all, const Count& check,
                  const Utf8& each) {
    SetCount(name, all, check, std::string(each.min, 'x'));
    for (std::size_t i = 0; i < all.size() && i < 2; ++i) {
      Enter(name, i, [&] { (*this)("", all[i], each); });
    }
    return true;
  }
  bool operator()(const char* name, std::vector<double>& all, const Count& check,
                  const Fraction& each) {
    SetCount(name, all, check, 1);
    if (!all.empty()) Enter(name, 0, [&] { (*this)("", all[0], each); });
    return true;
  }
  bool operator()(const char* name, std::vector<std::uint64_t>& all, const Count& check,
                  const Fraction&) {
    return SetCount(name, all, check, 1);
  }
  template <class M>
  bool operator()(const char* name, std::vector<M>& all, const Count& check) {
    SetCount(name, all, check, all.empty() ? M() : all[0]);
    for (std::size_t i = 0; i < all.size() && i < 2; ++i) {
      Enter(name, i, [&] { FieldsIn(all[i]); });
    }
    return true;
  }
  template <Fixed M>
  bool operator()(const char* name, M& m) {
    Enter(name, Input::kNoIndex, [&] { FieldsIn(m); });
    return true;
  }
  template <class M>
  bool operator()(const char* name, M& m, const Nested& check) {
    if (check.present) Enter(name, Input::kNoIndex, [&] { FieldsIn(m); });
    return true;
  }

 private:
  bool Choose() { return seen_++ == chosen_; }
  void Says(const char* lead, const char* name, const std::string& rest) {
    says_ = absl::StrCat(lead, within_, within_.empty() || *name == '\0' ? "" : ".", name, rest);
  }
  void Allow(const char* name, const std::string& rest) {
    Says("", name, rest);
    allowed_ = true;
  }
  template <class Fields>
  void Enter(const char* name, std::size_t index, Fields fields) {
    const std::string outer = within_;
    absl::StrAppend(&within_, within_.empty() ? "" : ".", name);
    if (index != Input::kNoIndex) absl::StrAppend(&within_, "[", index, "]");
    fields();
    within_ = outer;
  }
  template <class M>
  void FieldsIn(M& m) {
    if constexpr (Fixed<M>) {
      M::FixedFields(*this, m);
    } else {
      FieldsOf(*this, m);
    }
  }
  void SetText(const char* name, const std::string& to, std::size_t min, std::size_t max,
               std::string* text) {
    *text = to;
    Says("", name, absl::StrCat(" is ", to.size(), " bytes long, may be ", min, " to ", max));
  }
  void AllowText(const char* name, std::size_t min, std::size_t max, std::string* text) {
    SetText(name, std::string(max, 'x'), min, max, text);
    allowed_ = true;
  }
  void SetUnclean(const char* name, const std::string& to, const char* shown, std::string* text) {
    *text = to;
    Says("", name, absl::StrCat(" is \"", shown, "\", may be UTF-8 without control characters"));
  }
  bool SetUnclean(const char* name, std::string* text) {
    if (Choose()) SetUnclean(name, "a\x7f", "a\\177", text);
    if (Choose()) SetUnclean(name, "\xc2\x85", "\\302\\205", text);
    if (Choose()) SetUnclean(name, "tcp://\xff", "tcp://\\377", text);
    return true;
  }
  template <class T>
  bool SetCount(const char* name, std::vector<T>& all, const Count& check,
                const std::type_identity_t<T>& entry) {
    const std::uint64_t least = check.range().least(), most = check.range().most();
    const auto resize = [&](std::uint64_t size) {
      all.resize(size, entry);
      return OutOfRange(size, least, most);
    };
    if (least > 0 && Choose()) Says("number of ", name, resize(least - 1));
    if (most > kEntriesMax) return true;
    if (Choose()) Says("number of ", name, resize(most + 1));
    if (most > 0 && Choose()) {
      Says("number of ", name, resize(most));
      allowed_ = true;
    }
    return true;
  }

  std::size_t chosen_, seen_ = 0;
  std::string within_, says_;
  bool allowed_ = false;
};

}  // namespace

void ForEachViolation(const AnyMessage& message, const std::function<void(const Violation&)>& use) {
  for (std::size_t chosen = 0;; ++chosen) {
    AnyMessage changed = message;
    Violator violator(chosen);
    std::visit(
        [&]<class Message>(Message& m) {
          if constexpr (!std::is_same_v<Message, std::monostate>) FieldsOf(violator, m);
        },
        changed);
    if (!violator.done()) return;
    use({std::move(changed), absl::StrCat("malformed ", NameOf(message), ": ", violator.says()),
         violator.allowed()});
  }
}

}  // namespace leeway::proto
