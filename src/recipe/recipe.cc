#include "recipe/recipe.h"

#include <cstdlib>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"
#include "recipe/fields.h"
#include "recipe/sense.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

namespace {
constexpr uint64_t kSecretLimit = 64 << 10;

const Json& nothing() {
  static const Json null;
  return null;
}

// The name of an artifact does not identify it once its content does.
Json without_artifact_names(Json document) {
  const auto model = document.find("model");
  if (model == document.end() || !model->is_object()) return document;
  const auto artifacts = model->find("artifact");
  if (artifacts == model->end() || !artifacts->is_array()) return document;
  for (auto& artifact : *artifacts)
    if (artifact.is_object() && artifact.contains("sha256")) artifact.erase("file");
  return document;
}
}  // namespace

const Json& Recipe::at(std::string_view path) const {
  if (const Json* written = find_value(document_, path)) return *written;
  if (const Field* field = recipe_schema().find(path)) return field->fallback;
  return nothing();
}

bool Recipe::has(std::string_view path) const {
  return find_value(document_, path) != nullptr;
}

std::string Recipe::text(std::string_view path) const {
  const Json& value = at(path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

int64_t Recipe::integer(std::string_view path, int64_t fallback) const {
  const Json& value = at(path);
  return value.is_number_integer() ? value.get<int64_t>() : fallback;
}

double Recipe::number(std::string_view path, double fallback) const {
  const Json& value = at(path);
  return value.is_number() ? value.get<double>() : fallback;
}

bool Recipe::flag(std::string_view path, bool fallback) const {
  const Json& value = at(path);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::vector<std::string> Recipe::list(std::string_view path) const {
  std::vector<std::string> out;
  if (const Json& value = at(path); value.is_array())
    for (const auto& element : value)
      if (element.is_string()) out.push_back(element.get<std::string>());
  return out;
}

std::map<std::string, std::string> Recipe::map(std::string_view path) const {
  std::map<std::string, std::string> out;
  if (const Json& value = at(path); value.is_object())
    for (const auto& [key, element] : value.items())
      if (element.is_string()) out[key] = element.get<std::string>();
  return out;
}

Position Recipe::position(std::string_view path) const {
  for (std::string_view look = path; !look.empty();) {
    if (const auto found = positions_.find(look); found != positions_.end()) {
      Position at = found->second;
      at.key = std::string(path);
      return at;
    }
    const auto cut = look.find_last_of(".[");
    look = cut == std::string_view::npos ? std::string_view() : look.substr(0, cut);
  }
  Position at;
  at.file = path_;
  at.key = std::string(path);
  return at;
}

// Builds recipes. Lives for one file.
class RecipeLoader {
 public:
  static Loaded<Recipe> build(Loaded<TomlDocument> toml) {
    Loaded<Recipe> out;
    out.source = std::move(toml.source);
    out.diagnostics = std::move(toml.diagnostics);
    if (!toml.value) return out;
    const Schema& schema = recipe_schema();
    out.diagnostics = schema.check(*toml.value);
    explain_single_dtype(out.diagnostics, *toml.value);

    Recipe recipe;
    recipe.path_ = toml.value->file;
    recipe.document_ = std::move(toml.value->value);
    recipe.positions_ = std::move(toml.value->positions);
    recipe.name_ = recipe.text("name");
    add_sense(recipe, out.diagnostics);
    sort_by_position(out.diagnostics);
    if (has_errors(out.diagnostics)) return out;
    recipe.canonical_ = schema.identity(without_artifact_names(recipe.document_));
    recipe.digest_ = base::sha256(base::canonical(recipe.canonical_));
    recipe.unpinned_ = find_unpinned(recipe);
    out.value = std::move(recipe);
    return out;
  }

 private:
  static void explain_single_dtype(std::vector<Diagnostic>& diagnostics,
                                   const TomlDocument& document) {
    const Json* dtype = find_value(document.value, "model.dtype");
    if (!dtype || !dtype->is_string()) return;
    for (auto& diagnostic : diagnostics) {
      if (diagnostic.at.key != "model.dtype") continue;
      diagnostic.problem = "one number format, " + dtype->dump() +
                           ", for the whole model: components differ, and a comparison could not "
                           "say which of them changed";
      diagnostic.remedy =
          "name them: [model.dtype] with experts, shared_experts, dense, attention, embedding, "
          "head, draft, activations, as far as they are known";
    }
  }

  // A field that the schema already refuses is not judged a second time.
  static void add_sense(const Recipe& recipe, std::vector<Diagnostic>& diagnostics) {
    std::set<std::string> refused;
    for (const auto& diagnostic : diagnostics) refused.insert(diagnostic.at.key);
    if (refused.contains("schema") && recipe.text("schema") != recipe_schema().name()) return;
    Findings findings(recipe);
    check_declared(recipe, findings);
    check_model(recipe, findings);
    check_serving(recipe, findings);
    check_speculation(recipe, findings);
    check_launch(recipe, findings);
    for (auto& finding : findings.take())
      if (!refused.contains(finding.at.key)) diagnostics.push_back(std::move(finding));
  }
};

Loaded<Recipe> load_recipe(const std::string& path) {
  return RecipeLoader::build(load_toml(path));
}

Loaded<Recipe> parse_recipe(std::string_view toml, const std::string& path) {
  return RecipeLoader::build(parse_toml(toml, path));
}

std::string recipe_reference() {
  return reference(recipe_schema());
}

Result<std::string> resolve_secret(std::string_view reference) {
  if (reference.starts_with("env:")) {
    const std::string name(reference.substr(4));
    const char* value = std::getenv(name.c_str());
    if (!value || !*value)
      return fail(Kind::kNotFound, Side::kClient,
                  "the environment variable " + name + " that holds a secret is not set",
                  "export " + name + " before you start anvil");
    return std::string(value);
  }
  if (reference.starts_with("file:")) {
    const std::string path(reference.substr(5));
    auto bytes = base::read_file(path, kSecretLimit);
    if (!bytes) return fail(std::move(bytes.error().with_context("reading a secret")));
    std::string secret(base::trim(*bytes));
    if (secret.empty())
      return fail(Kind::kInvalidInput, Side::kClient, "the secret file " + path + " is empty");
    return secret;
  }
  return fail(Kind::kInvalidInput, Side::kClient,
              "a secret must be a reference, env:NAME or file:PATH",
              "the value itself never stands in a file of ours");
}

}  // namespace anvil::recipe
