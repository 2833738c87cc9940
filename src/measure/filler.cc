#include "measure/prompts.h"

namespace anvil::measure {

namespace {

using Words = std::vector<std::string_view>;

const Words kPeople = {
    "the harbour master",  "a retired surveyor",     "the night porter",     "our neighbour",
    "the young violinist", "a travelling baker",     "the head gardener",    "an old fisherman",
    "the bridge engineer", "a quiet librarian",      "the school inspector", "the ferry captain",
    "a visiting botanist", "the mayor's cousin",     "the clock repairer",   "a patient beekeeper",
    "the station keeper",  "a tired translator",     "the glass painter",    "an eager apprentice",
    "the village doctor",  "a careful cartographer", "the stage carpenter",  "the tax collector",
    "a former sailor",     "the weather observer",   "the choir director",   "a lonely shepherd",
    "the museum guard",    "a curious student",      "the orchard owner",    "the letter carrier"};
const Words kVerbs = {"repaired",  "described", "carried",   "measured",  "painted",   "forgot",
                      "borrowed",  "counted",   "returned",  "sketched",  "polished",  "discovered",
                      "weighed",   "collected", "exchanged", "inspected", "arranged",  "remembered",
                      "delivered", "copied",    "examined",  "abandoned", "protected", "unpacked",
                      "mentioned", "replaced",  "admired",   "sorted",    "traded",    "recorded"};
const Words kAdjectives = {"heavy",   "narrow",  "silver",  "ancient", "crooked", "bright",
                           "wooden",  "distant", "gentle",  "rusty",   "hollow",  "striped",
                           "damp",    "curious", "square",  "pale",    "famous",  "broken",
                           "foreign", "modest",  "sturdy",  "dusty",   "elegant", "unusual",
                           "copper",  "frozen",  "painted", "simple",  "woven",   "forgotten"};
const Words kThings = {"lantern",  "compass", "ledger", "kettle",    "staircase", "map",
                       "carriage", "cello",   "basket", "telescope", "anchor",    "letter",
                       "mirror",   "bridge",  "barrel", "notebook",  "chimney",   "portrait",
                       "engine",   "garden",  "window", "bell",      "suitcase",  "calendar",
                       "umbrella", "ladder",  "boat",   "table",     "coat",      "clock"};
const Words kPlaces = {"behind the old mill",       "near the market square",
                       "at the edge of the forest", "under the railway arches",
                       "in the upper library",      "beside the frozen canal",
                       "on the northern pier",      "at the foot of the hill",
                       "inside the glass house",    "across the wide valley",
                       "above the bakery",          "in the empty theatre",
                       "by the western gate",       "along the coast road",
                       "between the two lakes",     "outside the city walls",
                       "on a small island",         "next to the post office",
                       "in a borrowed workshop",    "at the last stop of the tram"};
const Words kTimes = {"before sunrise",
                      "during the long winter",
                      "on a rainy Tuesday",
                      "late in the evening",
                      "after the harvest",
                      "early in spring",
                      "when the tide was low",
                      "shortly before noon",
                      "in the middle of the week",
                      "while the others slept",
                      "on the first day of June",
                      "after many quiet years",
                      "during a short strike",
                      "as the fog was lifting",
                      "at the end of the season",
                      "long before the war",
                      "on market day",
                      "just after midnight"};
const Words kReasons = {
    "because nobody else had the time",     "although the weather was poor",
    "without asking for any payment",       "so that the children could see it",
    "since the road was closed again",      "as the contract had required",
    "which surprised the whole council",    "until the money ran out",
    "even though the key was missing",      "and wrote a short report about it",
    "but never spoke of it afterwards",     "as carefully as the light allowed",
    "while a small crowd was watching",     "despite the warnings of two experts",
    "and then walked home along the river", "hoping for a better year"};

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace

// splitmix64: small, and the same on every platform.
uint64_t Filler::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::string_view Filler::pick(const std::vector<std::string_view>& words) {
  return words[next() % words.size()];
}

std::string Filler::sentence() {
  const uint64_t shape = next() % 6;
  // Parts are drawn one by one: the order of evaluation inside one expression is not fixed.
  const std::string who(pick(kPeople)), verb(pick(kVerbs)), adjective(pick(kAdjectives)),
      thing(pick(kThings)), place(pick(kPlaces)), time(pick(kTimes)), reason(pick(kReasons)),
      other(pick(kThings));
  switch (shape) {
    case 0:
      return capitalised(who + " " + verb + " the " + adjective + " " + thing + " " + place + ".");
    case 1:
      return capitalised(time + ", " + who + " " + verb + " the " + thing + " " + reason + ".");
    case 2:
      return capitalised(who + " " + verb + " the " + thing + " and the " + adjective + " " +
                         other + " " + time + ".");
    case 3:
      return capitalised(place + ", " + who + " " + verb + " the " + adjective + " " + thing + " " +
                         reason + ".");
    case 4:
      return capitalised("it was " + who + " who " + verb + " the " + thing + " " + place + " " +
                         time + ".");
    default:
      return capitalised("the " + adjective + " " + thing + " that " + who + " " + verb + " " +
                         time + " stood " + place + ".");
  }
}

}  // namespace anvil::measure
