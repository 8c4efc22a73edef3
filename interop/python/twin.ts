import { defineEnvironment } from "@aenv/kit";
import { z } from "zod";

const city = z.object({ city: z.string() });

/** The environment of twin.py, written with the kit. */
export const twin = defineEnvironment({
  tools: [
    {
      name: "get_weather",
      description: "Weather of a city.",
      input: city,
      output: z.record(z.string(), z.unknown()),
      run: (input) => ({ city: input.city, temperature: "20", wind: null }),
    },
    {
      name: "greet",
      description: "Greets someone.",
      input: z.object({ name: z.string(), greeting: z.string().default("Hello") }),
      output: z.string(),
      run: ({ name, greeting }) => `${greeting}, ${name}!`,
    },
    {
      name: "forecast",
      description: "Forecast for some days.",
      input: z.object({ city: z.string(), days: z.number().int() }),
      output: z.object({ city: z.string(), days: z.number().int() }),
      run: (input) => input,
    },
    { name: "temperatures", description: "Temperatures of the week.", output: z.array(z.number().int()), run: () => [20, 21, 19] },
    { name: "nothing", description: "Does nothing.", run: () => undefined },
    { name: "picture", description: "A picture of the sky.", run: () => ({ type: "image", data: btoa("hi"), mimeType: "image/png" }) },
    {
      name: "fail",
      description: "Fails.",
      input: z.object({ why: z.string() }),
      output: z.string(),
      run: ({ why }) => {
        throw new Error(why);
      },
    },
  ],
  functions: [
    { name: "get_weather_func", input: city, run: (input) => ({ city: input.city, temperature: "20" }) },
    {
      name: "explode",
      input: z.object({ why: z.string() }),
      run: ({ why }) => {
        throw new Error(why);
      },
    },
  ],
  rewards: [{ name: "is_good_weather", input: city, score: ({ input }) => input.city === "Beijing" }],
});
