import { registerFunction, registerHealth, registerReward, registerTool } from "aenvironment";
import * as z from "zod";

// The state is a module variable, so a process can have only one instance. `--template stateful` keeps its state as a value instead.
let total = 0;

// Tools are for the agent. It sees their names, descriptions and inputs over MCP.
registerTool(
  {
    name: "add",
    description: "Adds a number to the running total and answers the new total.",
    input: z.object({ n: z.number().describe("what to add; may be negative") }),
  },
  ({ n }) => {
    total += n;
    return { total };
  },
);

// Rewards, functions and health are for the trainer; agents cannot reach them.
registerReward(
  { name: "reached", description: "1 when the total is the goal.", input: z.object({ goal: z.number().default(3) }) },
  ({ goal }) => (total === goal ? 1 : 0),
);

registerFunction({ name: "clear", description: "Sets the total back to 0." }, () => {
  total = 0;
  return { total };
});

registerHealth(() => ({ status: "healthy", total }));
