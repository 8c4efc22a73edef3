/** The version that the recorded reference and later releases accept. */
export const ATIF_VERSION = "ATIF-v1.7";

type Document = Readonly<Record<string, unknown>>;

export interface OracleCommand {
  readonly command: string;
  readonly output: string;
}

/** The trajectory of an agent without a model, such as the oracle: one step a command. */
export function commandTrajectory(
  agent: { readonly name: string; readonly version: string },
  sessionId: string,
  instruction: string,
  commands: readonly OracleCommand[],
): Document {
  return {
    schema_version: ATIF_VERSION,
    session_id: sessionId,
    agent,
    steps: [
      { step_id: 1, source: "user", message: instruction },
      ...commands.map(({ command, output }, i) => ({
        step_id: i + 2,
        source: "agent",
        message: "",
        llm_call_count: 0,
        tool_calls: [{ tool_call_id: `call-${i + 1}`, function_name: "execute_command", arguments: { command } }],
        observation: { results: [{ source_call_id: `call-${i + 1}`, content: output }] },
      })),
    ],
  };
}

/** One trajectory for all steps of a trial, renumbered; each step keeps its origin. */
export function joinedTrajectory(trial: string, parts: readonly { readonly step: string; readonly document: Document }[]): Document | null {
  const [first] = parts;
  if (first === undefined) return null;
  const steps = parts.flatMap(({ step, document }) =>
    listOf(document.steps).map((one) => ({
      ...one,
      extra: { ...tableOf(one.extra), harbor_step_name: step, harbor_original_step_id: one.step_id },
    })),
  );
  return {
    schema_version: first.document.schema_version ?? ATIF_VERSION,
    session_id: trial,
    trajectory_id: `${trial}:multi-step`,
    agent: first.document.agent,
    steps: steps.map((step, i) => ({ ...step, step_id: i + 1 })),
    extra: { harbor_multi_step: true },
  };
}

function listOf(value: unknown): readonly Document[] {
  return Array.isArray(value) ? value : [];
}

function tableOf(value: unknown): Document {
  return typeof value === "object" && value !== null ? (value as Document) : {};
}
