import { setTimeout } from "node:timers/promises";
import type { CallContext, ToolDefinition } from "@aenv/kit";
import { typed } from "../terminal/keys.ts";
import { Terminal } from "../terminal/terminal.ts";
import type { Episode } from "./episode.ts";

/** How long `keystrokes` waits for a command that names no time. */
const DEFAULT_WAIT_SEC = 60;
/** Time for a terminal to show what was typed. */
const ECHO_MS = 100;
const FIRST_PROMPT_MS = 5_000;

/** The terminal of the original: keys are typed into a shell, whose screen is read. `episodeOf` throws if there is no episode. */
export function terminalTools<State>(episodeOf: (state: State) => Episode): readonly ToolDefinition<State>[] {
  const terminalOf = async ({ state, sandbox }: CallContext<State>): Promise<Terminal> => {
    const episode = episodeOf(state);
    const { terminal: known, trial } = episode;
    if (known !== null && !known.hasEnded) return known;
    const terminal = await Terminal.open(sandbox, { cwd: trial.options.cwd, user: trial.plan.agent.user?.toString() ?? null });
    episode.terminal = terminal;
    await terminal.untilPrompt(1, FIRST_PROMPT_MS);
    return terminal;
  };
  return [
    {
      name: "keystrokes",
      description:
        "Types into a terminal and returns all that it has shown. A text that is the name of a key, such as C-c or Enter, is that key. With append_enter, waits until the command has ended, at most wait_time_sec.",
      input: {
        type: "object",
        properties: {
          keystrokes: { type: "string" },
          append_enter: { type: "boolean", default: false },
          wait_time_sec: { type: "number", minimum: 0, default: 0, description: "With append_enter, 0 means a minute" },
        },
        required: ["keystrokes"],
      },
      run: async (given, context) => {
        const { keystrokes = "", append_enter = false, wait_time_sec = 0 } = given as Waits;
        const terminal = await terminalOf(context);
        const prompts = terminal.screen.prompts + 1;
        await terminal.type(append_enter ? `${typed(keystrokes)}\r` : typed(keystrokes));
        if (append_enter) await terminal.untilPrompt(prompts, (wait_time_sec || DEFAULT_WAIT_SEC) * 1_000);
        else await setTimeout(Math.max(ECHO_MS, wait_time_sec * 1_000), undefined, { signal: context.signal });
        return terminal.screen.all();
      },
    },
    {
      name: "capture_pane",
      description: "Returns what the terminal shows.",
      input: { type: "object", properties: { wait_before_capture_sec: { type: "number", minimum: 0, default: 0 } } },
      run: async (given, context) => {
        const { wait_before_capture_sec = 0 } = given as { wait_before_capture_sec?: number };
        const terminal = await terminalOf(context);
        await setTimeout(wait_before_capture_sec * 1_000, undefined, { signal: context.signal });
        return terminal.screen.text();
      },
    },
  ];
}

interface Waits {
  readonly keystrokes?: string;
  readonly append_enter?: boolean;
  readonly wait_time_sec?: number;
}
