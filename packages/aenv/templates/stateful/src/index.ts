import { readFile } from "node:fs/promises";
import { dataPath, defineEnvironment } from "aenvironment";
import * as z from "zod";

const taskList = z.array(z.object({ id: z.string(), instruction: z.string(), split: z.string(), max: z.number() }));

/** The whole state of an episode: a plain value, so that it can be reset, saved, copied and forked. */
interface State {
  readonly secret: number;
  readonly max: number;
  readonly guesses: number[];
}

export default defineEnvironment({
  // The same task and seed give the same episode.
  setup: ({ task, seed }): State => {
    const max = typeof task?.max === "number" ? task.max : 10;
    return { secret: 1 + (seed % max), max, guesses: [] };
  },

  // `dataPath` finds the file in the project and in the bundle; `buildConfig.data` in config.json adds it to the bundle.
  tasks: async () => taskList.parse(JSON.parse(await readFile(dataPath("data/tasks.json"), "utf8"))),

  tools: [
    {
      name: "guess",
      description: "Guesses the secret number; the answer is 'higher', 'lower' or 'found'.",
      input: z.object({ n: z.number().int().min(1) }),
      run: ({ n }, { state }) => {
        if (n > state.max) throw new Error(`the number is at most ${state.max}`);
        state.guesses.push(n);
        if (n === state.secret) return "found";
        return n < state.secret ? "higher" : "lower";
      },
    },
  ],

  rewards: [
    {
      name: "found",
      description: "1 when the secret number was guessed.",
      weight: 0.8,
      score: ({ state }) => (isFound(state) ? 1 : 0),
    },
    {
      name: "quick",
      description: "The fewer guesses, the nearer to 1.",
      weight: 0.2,
      score: ({ state }) => (isFound(state) ? Math.max(0, 1 - (state.guesses.length - 1) / state.max) : 0),
    },
  ],

  // The actions that solve the task. `npx aenvironment rollout .` plays them.
  oracle: ({ state }) => [{ tool: "guess", arguments: { n: state.secret } }],

  // Only the trainer can call functions: the agent cannot peek.
  functions: [{ name: "peek", description: "The state as it is.", run: (_, { state }) => state }],

  health: ({ state }) => ({ status: "healthy", guesses: state.guesses.length }),
});

function isFound({ guesses, secret }: State): boolean {
  return guesses.includes(secret);
}
