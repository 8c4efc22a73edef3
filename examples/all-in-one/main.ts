import { Environment, loadEnvironment, serve } from "aenvironment";

// The environment: what `aenv run` does, on any free port.
const { name, version, definition } = await loadEnvironment(import.meta.dirname);
await using sandbox = await serve(definition, { name, version, port: 0 });
console.log(`${name} is served at ${sandbox.url}`);

// The agent: it has only the tools.
await using env = await Environment.create(`${name}@${version}`, { instanceUrl: sandbox.url });
const tools = await env.listTools();
console.log(`tools: ${tools.map((tool) => tool.name).join(", ")}`);

const cities = (await env.callTool("list_cities")).json<string[]>();
for (const city of cities) console.log(`${city}: ${(await env.callTool("get_weather", { city })).text}`);

const mistake = await env.callTool("get_weather", { city: "Atlantis" });
console.log(`a mistake is an answer: ${mistake.text}`);

// The trainer: prepares the episode, runs the agent, and requests the reward.
const { cities: known } = await env.callFunction<{ cities: number }>("set_weather", { city: "Rome", sky: "sun", celsius: 31 });
console.log(`set_weather added Rome: ${known} cities`);

console.log((await env.callTool("advise", { city: "Oslo" })).text);
console.log(`reward: ${await env.callReward()}`);
console.log(`reward, if 10 degrees will do: ${await env.callReward({ warmerThan: 10 })}`);
console.log((await env.callTool("advise", { city: "Rome" })).text);
console.log(`reward: ${await env.callReward()}`);

const { data } = await env.checkHealth();
console.log(`health: ${JSON.stringify(data)}`);
