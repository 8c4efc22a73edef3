import { registerFunction, registerHealth, registerReward, registerTool } from "aenvironment";
import * as z from "zod";

// The one-file style: the parts that this file registers when it is loaded are the environment, and its state is in module
// variables. Such an environment has one instance per process. For forks, or many instances in one process, see environments/echo.

interface Weather {
  readonly sky: "sun" | "cloud" | "rain";
  readonly celsius: number;
}

const weather = new Map<string, Weather>([
  ["Lisbon", { sky: "sun", celsius: 24 }],
  ["Oslo", { sky: "cloud", celsius: 11 }],
  ["Cardiff", { sky: "rain", celsius: 14 }],
]);
let advice: string | null = null;

const city = z.string().describe("One of the cities of list_cities");

registerTool({ name: "list_cities", description: "The cities whose weather is known." }, () => [...weather.keys()]);

registerTool(
  {
    name: "get_weather",
    description: "The weather in a city now.",
    input: z.object({ city, unit: z.enum(["celsius", "fahrenheit"]).default("celsius") }),
  },
  ({ city, unit }) => {
    const { sky, celsius } = weatherIn(city);
    return { city, sky, temperature: unit === "celsius" ? celsius : (celsius * 9) / 5 + 32, unit };
  },
);

registerTool({ name: "advise", description: "Tells the traveller where to go.", input: z.object({ city }) }, ({ city }) => {
  weatherIn(city);
  advice = city;
  return `The traveller goes to ${city}.`;
});

// The trainer decides what good weather is: `callReward({ warmerThan: 15 })`.
registerReward({ name: "good_advice", input: z.object({ warmerThan: z.number().default(20) }) }, ({ warmerThan }) => {
  const there = advice === null ? undefined : weather.get(advice);
  return there !== undefined && there.sky !== "rain" && there.celsius > warmerThan ? 1 : 0;
});

// With its own path and method; by default a function is served at /functions/<name>.
registerFunction(
  {
    name: "set_weather",
    description: "Changes the weather, to set up an episode.",
    endpoint: "/weather",
    method: "PUT",
    input: z.object({ city: z.string(), sky: z.enum(["sun", "cloud", "rain"]), celsius: z.number() }),
  },
  ({ city, sky, celsius }) => {
    weather.set(city, { sky, celsius });
    return { cities: weather.size };
  },
);

registerHealth(() => (weather.size > 0 ? { status: "healthy", cities: weather.size } : { status: "unhealthy", reason: "no weather" }));

function weatherIn(name: string): Weather {
  const found = weather.get(name);
  if (found === undefined) throw new Error(`no weather is known for '${name}'; known: ${[...weather.keys()].join(", ")}`);
  return found;
}
