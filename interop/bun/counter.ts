import { defineEnvironment, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";

const counter = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [
    {
      name: "add",
      input: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
      run: ({ n }: { n: number }, { state }) => {
        state.total += n;
        return state.total;
      },
    },
  ],
  rewards: [{ name: "three", score: ({ state }) => (state.total === 3 ? 1 : 0) }],
});

const sandbox = await serve(counter, { name: "counter", port: 0 });
const env = await Environment.create("counter", { instanceUrl: sandbox.url });
const tools = (await env.listTools()).map(({ name }) => name);
const total = (await env.callTool("add", { n: 3 })).json();
const reward = await env.callReward();
await env.release();
await sandbox.close();
console.log(JSON.stringify({ tools, total, reward }));
