import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import { type CallContext, defineEnvironment, type LogLevel } from "../../definition/definition.ts";

const anything = z.object({ value: z.unknown() });

export const order = z.object({
  id: z.string().min(1),
  lines: z.array(z.object({ sku: z.string(), count: z.number().int().positive().default(1) })).max(3),
  priority: z.enum(["low", "high"]).default("low"),
  note: z.string().nullable().optional(),
});

const orderJson = {
  type: "object",
  $defs: { line: { type: "object", properties: { sku: { type: "string" }, count: { type: "integer", default: 1 } }, required: ["sku"] } },
  properties: { id: { type: "string", minLength: 1 }, lines: { type: "array", items: { $ref: "#/$defs/line" }, maxItems: 3 } },
  required: ["id"],
  additionalProperties: false,
};

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const satisfies readonly LogLevel[];

/** Notifications of a tool before its result: log lines and progress. */
export const speech = z.object({
  said: z.array(
    z.union([
      z.object({ level: z.enum(LEVELS), data: z.unknown() }),
      z.object({ done: z.number(), total: z.number().optional(), message: z.string().optional() }),
    ]),
  ),
});

function speak({ said }: z.infer<typeof speech>, { log, progress }: CallContext<undefined>): number {
  for (const one of said) {
    if ("level" in one) log(one.level, one.data);
    else progress(one.done, one.total, one.message);
  }
  return said.length;
}

/** Tools of every kind; their arguments decide what they return, throw and send. */
export const everyTool = defineEnvironment({
  setup: () => undefined,
  tools: [
    { name: "text", title: "Text", description: "Answers a line.", run: () => "a line" },
    { name: "nothing", run: () => undefined },
    { name: "echo", annotations: { readOnlyHint: true, title: "Echo" }, run: (input) => input },
    { name: "answer", input: anything, run: ({ value }) => value },
    {
      name: "answer.later",
      input: anything,
      run: async ({ value }) => {
        await nextTurn();
        return value;
      },
    },
    { name: "order", description: "Nested, with defaults.", input: order, run: (input) => input },
    { name: "order-json", input: orderJson, run: (input) => input },
    {
      name: "fail",
      input: z.object({ message: z.string().min(1) }),
      run: ({ message }) => {
        throw new Error(message);
      },
    },
    { name: "fail.later", input: anything, run: ({ value }) => Promise.reject(value) },
    { name: "speak", input: speech, run: speak },
    {
      name: "speak.later",
      input: speech,
      run: async (input, context) => {
        await nextTurn();
        const count = speak(input, context);
        await nextTurn();
        return `said ${count}`;
      },
    },
    {
      name: "sum",
      input: z.object({ numbers: z.array(z.number()).default([]) }),
      output: z.object({ total: z.number() }),
      run: ({ numbers }) => ({ total: numbers.reduce((total, n) => total + n, 0) }),
    },
    { name: "picture", run: () => ({ type: "image", data: "aGk=", mimeType: "image/png" }) },
    { name: "shaped", input: anything, output: z.object({ id: z.string(), n: z.number().default(0) }), run: ({ value }) => value },
    { name: "wrapped", input: anything, output: z.array(z.number()), run: ({ value }) => value },
    { name: "shaped-json", input: anything, output: orderJson, run: ({ value }) => value },
    {
      name: "checked.later",
      input: z.object({ n: z.number().refine(async (n) => (await nextTurn(n)) % 2 === 0, "must be even") }),
      run: ({ n }) => n,
    },
    {
      name: "badly-checked",
      input: z.object({
        n: z.number().refine(() => {
          throw new Error("the check itself is broken");
        }),
      }),
      run: ({ n }) => n,
    },
    {
      name: "mirrored",
      input: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } }, required: ["region"] },
      run: ({ region }) => `${region}`,
    },
    { name: "hidden", hidden: true, run: () => "never" },
  ],
});

export function toolNames(environment: { readonly tools?: readonly { readonly name: string }[] }): string[] {
  return (environment.tools ?? []).map((tool) => tool.name);
}
