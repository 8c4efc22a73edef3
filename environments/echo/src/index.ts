import { defineEnvironment } from "aenvironment";
import * as z from "zod";

/** The state of one episode. Each instance has its own value, so thousands of instances fit into one process. */
interface State {
  readonly goal: string;
  readonly echoes: string[];
  readonly notes: Map<string, string>;
}

/** The agent gets `instruction`; all other fields of a task, such as `goal`, are only for the trainer. */
const tasks = [
  { id: "greet", split: "train", instruction: "Echo the word 'hello'.", goal: "hello" },
  { id: "be-brief", split: "train", instruction: "Echo the word 'brevity', in as few calls as you can.", goal: "brevity" },
  { id: "recall", split: "test", instruction: "Echo the word that is remembered as 'password'.", goal: "sesame" },
];

export default defineEnvironment({
  tasks: () => tasks,

  // A task that a trainer makes up: it gives `{ goal: "…" }` instead of the id of a task. Without this line only the tasks above are played.
  inlineTask: (given) => {
    const { goal } = z.object({ goal: z.string().min(1) }).parse(given);
    return { id: "inline", instruction: `Echo the word '${goal}'.`, goal };
  },

  // Called once per episode: when an instance is created, and on every reset. What it returns is the new state.
  setup: ({ task }): State => ({
    goal: typeof task?.goal === "string" ? task.goal : "hello",
    echoes: [],
    notes: new Map(task?.id === "recall" ? [["password", "sesame"]] : []),
  }),

  // The first observation, which `reset` returns with the task. By default it is the task's instruction.
  observe: ({ task }) => task?.instruction ?? "Echo the word 'hello'.",

  // The messages that an agent begins with. Without this line it is what `observe` returns, as a message of the user.
  prompt: ({ task }) => [
    { role: "system", content: "Use the tools, then say that you are done." },
    { role: "user", content: task?.instruction ?? "Echo the word 'hello'." },
  ],

  // What the other side says when the agent speaks without calling a tool. Without these lines the agent's words end the episode.
  reply: (_, { state }) =>
    state.echoes.length === 0 ? { content: "Nothing was echoed yet. Use the tool 'echo'." } : { done: true, reason: "the agent is done" },

  // Whether the episode is over; it travels with every tool result. Here, ten echoes are enough.
  status: ({ state }) => (state.echoes.length >= 10 ? { done: true, reason: "ten echoes" } : false),

  // A reward after every step, for trainers that want one: the first echo of the goal.
  stepReward: ({ state }) => (state.echoes.length === 1 && state.echoes[0]?.includes(state.goal) ? 1 : 0),

  // What stands for the state when two episodes are compared. Without this line it is the whole state.
  digest: ({ echoes, notes }) => ({ echoes, notes }),

  // The actions that solve the task. Only trainers see them: `aenv rollout echo` plays them.
  oracle: ({ task }) => [
    ...(task?.id === "recall" ? [{ tool: "remember", arguments: { name: "password" } }] : []),
    { tool: "echo", arguments: { text: typeof task?.goal === "string" ? task.goal : "hello" } },
    { say: "Done." },
  ],

  // The agent API: everything that an agent can do. The model reads the descriptions.
  tools: [
    {
      name: "echo",
      description: "Says the text back.",
      input: z.object({
        text: z.string().min(1).describe("What to say"),
        times: z.number().int().min(1).max(10).default(1).describe("How often to say it"),
      }),
      // The input is checked before this runs, and defaults are filled in. A string becomes the text the model sees.
      run: ({ text, times }, { state }) => {
        const said = Array(times).fill(text).join(" ");
        state.echoes.push(said);
        return said;
      },
    },
    {
      name: "remember",
      description: "Keeps a note under a name. Without a text, it reads the note that was kept.",
      input: z.object({ name: z.string().min(1), text: z.string().optional() }),
      // With an output schema, the result is checked against it and also sent as structured content.
      output: z.object({ name: z.string(), text: z.string() }),
      run: ({ name, text }, { state }) => {
        if (text !== undefined) state.notes.set(name, text);
        const kept = state.notes.get(name);
        // An error that a tool throws is a result too: the agent gets the message, marked as an error, and can continue.
        if (kept === undefined)
          throw new Error(`nothing is remembered as '${name}'; known: ${[...state.notes.keys()].join(", ") || "nothing"}`);
        return { name, text: kept };
      },
    },
  ],

  // The trainer API: an agent can neither see nor call the following.
  functions: [
    {
      name: "transcript",
      description: "All echoes and notes of this episode.",
      run: (_, { state }) => ({ echoes: state.echoes, notes: Object.fromEntries(state.notes) }),
    },
  ],

  // Several rewards make one number: 0.8 x said_it + 0.2 x brief. The components are returned with the total.
  rewards: [
    {
      name: "said_it",
      description: "1 when the goal was echoed.",
      weight: 0.8,
      score: ({ state }) => (state.echoes.some((text) => text.includes(state.goal)) ? 1 : 0),
    },
    {
      name: "brief",
      description: "1 when something was echoed, in no more calls than allowed.",
      weight: 0.2,
      // A reward may take arguments from the trainer, checked like a tool's.
      input: z.object({ calls: z.number().int().min(1).default(1) }),
      score: ({ state, input }) => (state.echoes.length >= 1 && state.echoes.length <= input.calls ? 1 : 0),
    },
  ],

  // "healthy" means that the environment accepts calls. Any other status is answered with HTTP 503.
  health: ({ state }) => ({ status: "healthy", echoes: state.echoes.length }),
});
