import { writeInstanceReport } from "../grading/report.ts";
import type { Resolution } from "../grading/verdicts.ts";
import { patchOrNote, shortened } from "../runs/shortened.ts";
import type { Graded } from "./grade.ts";

/** What the reward returns: the fields of the original's, and ours. */
export interface RewardAnswer {
  readonly reward: 0 | 1;
  /** The report, as the original prints it. */
  readonly stdout: string;
  /** 0 if the instance is resolved. */
  readonly returncode: 0 | 1;
  readonly stderr: string | null;
  readonly instance: string;
  readonly resolved: boolean;
  readonly resolution: Resolution | null;
  /** Changes of the agent that are not part of the patch, with the reasons. */
  readonly left_out: readonly string[];
}

const LEFT_OUT = /^\S+ \S+ - WARNING - left out of the patch: (.*)$/gm;

export function answerOf(instance: string, { evaluation, log }: Graded): RewardAnswer {
  const grade = evaluation?.grade ?? null;
  const isResolved = grade?.report.resolved === true;
  return {
    reward: isResolved ? 1 : 0,
    stdout: grade === null ? "" : writeInstanceReport(instance, grade.report),
    returncode: isResolved ? 0 : 1,
    stderr: evaluation === null ? "the patch is empty" : evaluation.error === null ? null : `run err:${evaluation.error}`,
    instance,
    resolved: isResolved,
    resolution: grade?.resolution ?? null,
    left_out: [...log.matchAll(LEFT_OUT)].map(([, what = ""]) => what),
  };
}

/** Limit of all files of an instance together; a message of an environment may have 8 MiB. */
const MAX_TEXT = 7 * 1_024 ** 2;
/** The log repeats the patch, which must not leave the output of the tests without space. */
const MAX_LOG = 1_024 ** 2;

/** The files of an instance in a run of the reference. What is too long is shortened, which its text says. */
export function artifactsOf(instance: string, { patch, evaluation, log }: Graded): Readonly<Record<string, { readonly text: string }>> {
  const grade = evaluation?.grade ?? null;
  const files: [string, string | null][] = [
    ["report.json", grade === null ? null : writeInstanceReport(instance, grade.report)],
    ["patch.diff", patchOrNote(patch, MAX_TEXT)],
    ["eval.sh", evaluation?.script ?? null],
    ["run_instance.log", shortened(log, MAX_LOG)],
    ["test_output.txt", evaluation?.output ?? null],
  ];
  let left = MAX_TEXT;
  const kept: Record<string, { readonly text: string }> = {};
  for (const [name, text] of files) {
    if (text === null) continue;
    kept[name] = { text: shortened(text, left) };
    left = Math.max(0, left - Buffer.byteLength(kept[name].text));
  }
  return kept;
}
