import { defineEnvironment } from "aenvironment";
import { Episode } from "./episode.ts";
import { tasks } from "./tasks/index.ts";
import { editFileTool, executeCommand, listFilesTool, readFileTool, writeFileTool } from "./tools.ts";

const SYSTEM =
  "You work in a Linux terminal. The tool execute_command runs commands in a bash session; the other tools read, write, edit and list files. All of them start in the same working folder. Do what the user asks, check the result, and then say that you are done.";

const byId = new Map(tasks.map((task) => [task.id, task]));

export default defineEnvironment({
  tasks: () => tasks.map(({ id, split, instruction }) => ({ id, split, instruction })),

  setup: ({ task, seed, variables }) => Episode.open({ task: task === null ? null : (byId.get(task.id) ?? null), seed, variables }),
  teardown: ({ terminal }) => terminal.close(),

  prompt: ({ task }) => [
    { role: "system", content: SYSTEM },
    { role: "user", content: task?.instruction ?? "There is no task. Look around." },
  ],
  oracle: ({ state }) => (state.exercise === null ? null : [...state.exercise.solution, { say: "Done." }]),
  digest: (state) => state.digest(),
  // A time differs when an episode is played again, and is of no use to an agent.
  observation: withoutDuration,

  tools: [executeCommand, readFileTool, writeFileTool, editFileTool, listFilesTool],
  rewards: [
    {
      name: "solved",
      description: "1 if the files in the working folder are what the task asks for, else 0 with the reasons.",
      score: ({ state, signal }) => state.score(signal),
    },
  ],
  snapshot: () => {
    throw new Error(
      "the state is a bash process, which is not a value; a fork with fidelity 'memory' copies it, on a server with the engine oci and runsc",
    );
  },
  health: ({ state }) => ({ status: "healthy", sessions: state.terminal.sessions }),
});

function withoutDuration(result: unknown): unknown {
  if (typeof result !== "object" || result === null || !("duration_ms" in result)) return result;
  const { duration_ms: _, ...rest } = result;
  return rest;
}
