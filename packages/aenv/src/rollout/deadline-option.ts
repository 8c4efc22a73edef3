import { Option } from "commander";
import { duration } from "../options/values.ts";

/** The deadline of each episode that a command plays, and what becomes of one that takes longer. */
export function deadlineOption(consequence = "is unscored"): Option {
  return new Option("--deadline <duration>", `how long an episode may take in all; a longer one ${consequence}`)
    .argParser(duration)
    .default(30 * 60_000, "30m");
}
