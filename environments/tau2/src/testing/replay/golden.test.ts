import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { indent, PyError, quoteJson } from "@aenv/benchmark";
import { Tally, textAt } from "@aenv/benchmark/testing";
import { describeNeeding, tau2Path } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { parseAction } from "../../core/messages/action.ts";
import { parseMessage } from "../../core/messages/stored.ts";
import { setState } from "../../core/state.ts";
import { domains, openDomain } from "../../domains/index.ts";
import { calculate } from "../../python/calculate/calculate.ts";
import { readJson } from "../../python/json/reader.ts";
import {
  bool,
  date,
  datetime,
  dict,
  int,
  list,
  literal,
  member,
  nullable,
  number,
  text,
  withDefault,
} from "../../python/model/field-types.ts";
import { model, type Type } from "../../python/model/model.ts";
import { repr } from "../../python/repr.ts";
import { enumeration } from "../../python/values/enums.ts";
import { Dict, type PyValue } from "../../python/values/values.ts";
import { readRepr } from "./literals.ts";
import { replayMisc } from "./misc.ts";
import { printed, replayFile } from "./replay.ts";
import { dictAt, listAt, readFormat } from "./vectors.ts";

const data = join(tau2Path, "data");
/** Time limit of a thousand hashes of a large database on a busy machine. */
const SLOW_MS = 120_000;
const golden = (file: string): string => join(tau2Path, "golden", file);

describeNeeding("tau2-data", "the reference's answers", () => {
  it.each([
    "tasks.airline.jsonl.gz",
    "random.airline.jsonl.gz",
    "tasks.mock.jsonl.gz",
    "random.mock.jsonl.gz",
    "tasks.retail.jsonl.gz",
    "random.retail.jsonl.gz",
    "random.retail-extra.jsonl.gz",
    "retail-calculate-extra.json.gz",
    "tasks.telecom.jsonl.gz",
    "random.telecom.jsonl.gz",
    "telecom-extra.jsonl.gz",
  ])("of %s are reproduced", { timeout: SLOW_MS }, async (file) => {
    const tally = await replayFile(golden(file), data);
    expect(tally.allMatch, tally.print(file)).toBe(true);
  });

  it("of misc.json.gz are reproduced for the domains that exist here", () => {
    const vectors = readFormat(golden("misc.json.gz"));
    if (vectors.format !== "misc") throw new Error("misc.json.gz is not a file of unit vectors");
    const prompts = [...dictAt(vectors.groups, "prompts")].filter(([name]) => domains.has(String(name)));
    const tally = new Tally(printed);
    replayMisc(new Dict([...vectors.groups, ["prompts", new Dict(prompts)]]), data, tally);
    expect(tally.allMatch, tally.print("misc")).toBe(true);
  });

  it("about policies are reproduced for the domains that exist here", () => {
    for (const [key, recorded] of readJson(readFileSync(golden("policies.json"), "utf8")) as Dict<Dict>) {
      const [name = "", mode] = String(key).split("+");
      if (!domains.has(name)) continue;
      const create = () => openDomain(name, data).create({ isSolo: mode === "solo" });
      if (recorded.has("error")) expect(create).toThrow(textAt(recorded, "error"));
      else
        expect([...create().hashes(), createHash("sha256").update(create().policy).digest("hex")]).toEqual([
          recorded.get("agent_hash"),
          recorded.get("user_hash"),
          recorded.get("sha256"),
        ]);
    }
  });
});

describeNeeding("tau2-data", "the core's vectors", () => {
  const cases = (group: string): readonly PyValue[] => {
    const vectors = readJson(gunzipSync(readFileSync(golden("core-vectors.json.gz"))).toString("utf8"));
    return vectors instanceof Dict ? listAt(vectors, group) : [];
  };
  const records = (group: string): Dict[] => cases(group).filter((value) => value instanceof Dict);
  const rows = (group: string): string[][] => cases(group).map((row) => (Array.isArray(row) ? (row as string[]) : []));

  it("for actions are reproduced, except characters by name", () => {
    for (const vector of records("parse_action_ext")) {
      const action = textAt(vector, "action");
      if (action.includes("\\N{")) continue;
      const parsed = parseAction(action);
      const { call } = "call" in parsed ? parsed : { call: null };
      const got = call === null ? true : [call.name, repr(call.arguments), call.requestor, call.id];
      const wanted = ["name", "arguments_repr", "requestor", "id"].map((key) => vector.get(key));
      expect(got, action).toEqual(vector.get("text") ?? wanted);
    }
  });

  it("for the calculator are reproduced", () => {
    for (const [expression = "", output] of rows("calculate_ext"))
      expect(
        attempt(() => calculate(expression), "Error: "),
        expression,
      ).toBe(output);
  });

  it("for text are reproduced", () => {
    for (const [input = "", output] of rows("indent_tab")) expect(indent(input, "\t")).toBe(output);
    for (const [input = "", output] of rows("str_repr")) expect(repr(input)).toBe(output);
    for (const [input = "", output] of rows("json_str")) expect(quoteJson(input)).toBe(output);
  });

  it("for the validation of fields are reproduced", () => {
    const Sub = model("Sub", { a: text, n: withDefault(int, 3) });
    const types: Record<string, Type> = {
      str: text,
      int,
      float: number,
      bool,
      'Literal["a"]': literal("a"),
      'Literal["a","b"]': literal("a", "b"),
      'Literal["a","b","c"]': literal("a", "b", "c"),
      "StrEnum(internet,broken)": member(enumeration("APN", { A: "internet", B: "broken" })),
      "List[str]": list(text),
      "Dict[str,int]": dict(int),
      date,
      datetime,
      "Optional[str]": nullable(text),
      "Optional[int]": nullable(int),
      "Sub{a:str,n:int=3}": Sub,
      "List[Sub]": list(Sub),
    };
    for (const [name = "", input = "", , output] of rows("pydantic_field_f_of_model_M")) {
      const type = types[name];
      if (type === undefined) throw new Error(`the vectors have a type without a test: ${name}`);
      expect(
        attempt(() => repr(model("M", { f: type }).create({ f: readRepr(input) }).f)),
        `${name} ${input}`,
      ).toBe(output);
    }
  });

  describe("for initial states", () => {
    it("are reproduced", () => {
      for (const vector of records("set_state_cases")) {
        const environment = openDomain("mock", data).create({ isSolo: vector.get("solo") === true, now: () => "<now>" });
        const given = dictAt(vector, "data");
        const part = (key: string): Dict | null => (given.has(key) ? dictAt(given, key) : null);
        const state = {
          initialization_data: { agent_data: part("agent_data"), user_data: part("user_data") },
          initialization_actions: listAt(vector, "actions").map((action) => ({
            env_type: textAt(action as Dict, "env_type"),
            func_name: textAt(action as Dict, "func_name"),
            arguments: dictAt(action as Dict, "arguments"),
          })),
          message_history: null,
        };
        const got = attempt(() => {
          setState(environment, state, listAt(vector, "history").map(parseMessage), vector.get("strict") !== false);
          return JSON.stringify(environment.hashes());
        });
        expect(got, textAt(vector, "label")).toBe(vector.get("text") ?? JSON.stringify(vector.get("hash")));
      }
    });
  });
});

function attempt(run: () => string, prefix = ""): string {
  try {
    return run();
  } catch (error) {
    if (error instanceof PyError) return prefix + error.message;
    throw error;
  }
}
