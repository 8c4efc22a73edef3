import { list, object } from "../fields/containers.ts";
import { type Notes, optional, type Parsed, withDefault } from "../fields/field.ts";
import { bool, float, oneOf, text } from "../fields/scalars.ts";
import { parseYaml } from "../python/pyyaml.ts";
import { PARSERS } from "./parsers.ts";

const shape = {
  instruction: text,
  difficulty: withDefault(oneOf("easy", "medium", "hard", "unknown"), "unknown"),
  author_name: withDefault(text, "unknown"),
  author_email: withDefault(text, "unknown"),
  category: withDefault(text, "software_engineering"),
  tags: withDefault(list(text), []),
  parser_name: withDefault(oneOf(...PARSERS), "pytest"),
  max_agent_timeout_sec: withDefault(float, 360),
  max_test_timeout_sec: withDefault(float, 60),
  run_tests_in_same_shell: withDefault(bool, false),
  disable_asciinema: withDefault(bool, false),
  estimated_duration_sec: optional(float),
  expert_time_estimate_min: optional(float),
  junior_time_estimate_min: optional(float),
};

/** `task.yaml` of Terminal-Bench 1. */
export type Tb1Config = Parsed<typeof shape>;

/** Throws `YamlSyntaxError` or `InvalidValue`. */
export function parseTaskYaml(source: string, notes?: Notes): Tb1Config {
  return object(shape).parse(parseYaml(source), "", notes);
}

const solutionCommand = object({
  command: text,
  min_timeout_sec: withDefault(float, 0),
  max_timeout_sec: withDefault(float, 180),
  block: withDefault(bool, false),
  append_enter: withDefault(bool, true),
});

/** One command of `solution.yaml`, which is typed into a terminal. */
export type SolutionCommand = ReturnType<typeof solutionCommand.parse>;

export function parseSolutionYaml(source: string): readonly SolutionCommand[] {
  return list(solutionCommand).parse(parseYaml(source), "");
}
