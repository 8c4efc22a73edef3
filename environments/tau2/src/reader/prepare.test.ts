import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding, tau2Path } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tinyBenchmark, writeFiles } from "../fixtures/tiny-benchmark.ts";
import { knownHashes } from "./known-hashes.ts";
import { prepareData } from "./prepare.ts";
import type { ToolSchema } from "./schemas/tools.ts";

let root: string;
let from: string;
let to: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tau2-reader-"));
  from = join(root, "tiny-benchmark-1.0");
  to = join(root, "data");
  writeFiles(from, tinyBenchmark);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const json = (path: string): unknown => JSON.parse(readFileSync(join(to, path), "utf8"));
const toolNamed = (name: string): ToolSchema => {
  const found = (json("schemas/mock.json") as ToolSchema[]).find((tool) => tool.name === name);
  if (!found) throw new Error(`no tool ${name}`);
  return found;
};

/** Names longer than 100 characters need the archive's extensions. */
const LONG = `data/tau2/domains/mock/${"long/".repeat(30)}file.md`;

function archive(format: string): string {
  writeFiles(from, { [LONG]: "far\n" });
  const file = join(root, "tiny.tar.gz");
  execFileSync("tar", ["-czf", file, `--format=${format}`, "-C", root, "tiny-benchmark-1.0"]);
  return file;
}

describe("preparing a data directory", () => {
  it("copies the data byte for byte, without the files of voice conversations", async () => {
    const { domains, hashes } = await prepareData({ from, to });
    expect(domains).toEqual(["mock"]);
    expect(readFileSync(join(to, "mock/policy.md"), "utf8")).toBe("Be kind.\r\n");
    expect(existsSync(join(to, "mock/notes/deep.md"))).toBe(true);
    expect(existsSync(join(to, "user_simulator/simulation_guidelines.md"))).toBe(true);
    expect(existsSync(join(to, "LICENSE"))).toBe(true);
    expect(existsSync(join(to, "mock/tasks_voice.json"))).toBe(false);
    expect(json("hashes.json")).toEqual(hashes);
  });

  it("takes the folder of the data alone too, and leaves its tools and prompts to the environment", async () => {
    await prepareData({ from, to });
    const whole = json("hashes.json");
    const alone = join(root, "alone");
    cpSync(join(from, "data/tau2/domains"), alone, { recursive: true });
    cpSync(join(from, "data/tau2/user_simulator"), join(alone, "user_simulator"), { recursive: true });
    cpSync(join(from, "LICENSE"), join(alone, "LICENSE"));
    rmSync(to, { recursive: true });
    expect(await prepareData({ from: alone, to })).toMatchObject({ domains: ["mock"], tools: { mock: 0 }, prompts: [] });
    expect(json("hashes.json")).toEqual(whole);
    expect(readFileSync(join(to, "mock/policy.md"), "utf8")).toBe("Be kind.\r\n");
    rmSync(join(alone, "mock"), { recursive: true });
    await expect(prepareData({ from: alone, to })).rejects.toThrow("neither a checkout of the benchmark");
  });

  it("leaves out a domain that cannot be played, unless it is named", async () => {
    // before: `bench data` listed banking_knowledge as prepared.
    writeFiles(from, { "data/tau2/domains/banking_knowledge/db.json": "{}" });
    expect((await prepareData({ from, to })).domains).toEqual(["mock"]);
    expect(existsSync(join(to, "banking_knowledge"))).toBe(false);
    await expect(prepareData({ from, to, domains: ["banking_knowledge"] })).rejects.toThrow("declares no class KnowledgeTools");
  });

  it("lists tools in the toolkit's order, inherited ones last, with their decorators' flags", async () => {
    await prepareData({ from, to });
    const marks = (json("schemas/mock.json") as ToolSchema[]).map((tool) => [
      tool.requestor,
      tool.qualname,
      tool.type,
      tool.mutates_state,
      tool.discoverable,
    ]);
    expect(marks).toEqual([
      ["assistant", "MockTools.lend", "write", true, false],
      ["assistant", "MockTools.create_task", "write", true, false],
      ["assistant", "MockTools.measure", "read", false, false],
      ["assistant", "MockTools.shut", "generic", true, false],
      ["assistant", "MockTools.secret_0001", "write", true, true],
      ["assistant", "Common.hand_over", "generic", false, false],
      ["user", "MockUserTools.look", "read", false, false],
    ]);
    expect(toolNamed("secret_0001").openai_schema).toBeUndefined();
  });

  it("writes descriptions and parameters as the benchmark does", async () => {
    await prepareData({ from, to });
    expect(toolNamed("hand_over").openai_schema).toEqual({
      type: "function",
      function: {
        name: "hand_over",
        description: "Give the reader to a librarian.\n\nOnly if\n -  nothing else helps",
        parameters: {
          properties: { summary: { description: "What happened so far.", title: "Summary", type: "string" } },
          required: ["summary"],
          title: "parameters",
          type: "object",
        },
      },
    });
    expect(toolNamed("look").openai_schema?.function.parameters).toEqual({ properties: {}, title: "parameters", type: "object" });
    expect(toolNamed("measure").openai_schema?.function).toEqual({
      name: "measure",
      description: "measure",
      parameters: {
        $defs: { Size: { enum: ["small", "large"], title: "Size", type: "string" } },
        properties: {
          size: { anyOf: [{ $ref: "#/$defs/Size" }, { type: "string" }], title: "Size" },
          filters: { additionalProperties: true, default: {}, title: "Filters", type: "object" },
          exact: { anyOf: [{ type: "number" }, { type: "null" }], default: -1.5, title: "Exact" },
          anything: { default: null, title: "Anything" },
        },
        required: ["size"],
        title: "parameters",
        type: "object",
      },
    });
  });

  it("writes models with their defaults, limits and additionalProperties", async () => {
    await prepareData({ from, to });
    const schema = toolNamed("lend").openai_schema?.function;
    expect(schema?.description).toBe(
      "Lend books to a reader. The sentence goes on,\n\neven in the next line.\nChecks:\n    - the reader exists",
    );
    expect(schema?.parameters.properties).toEqual({
      reader_id: { description: "The reader's ID, such as 'r_1': mind the colon.", title: "Reader Id", type: "string" },
      books: {
        description: "What to lend,\neach a book\n  or its fields,\nas you like.",
        items: { anyOf: [{ $ref: "#/$defs/Book" }, { additionalProperties: true, type: "object" }] },
        title: "Books",
        type: "array",
      },
      genre: { description: "Of the books.", enum: ["prose", "verse"], title: "Genre", type: "string" },
      limit: { default: 12, description: "How many at most.", title: "Limit", type: "integer" },
      note: { default: null, title: "Note", type: "string" },
    });
    expect(schema?.parameters.required).toEqual(["reader_id", "books", "genre"]);
    expect(schema?.parameters.$defs).toEqual({
      Book: {
        properties: { spine: { $ref: "#/$defs/Spine" }, sequel: { anyOf: [{ $ref: "#/$defs/Book" }, { type: "null" }], default: null } },
        required: ["spine"],
        title: "Book",
        type: "object",
      },
      Size: { enum: ["small", "large"], title: "Size", type: "string" },
      Spine: {
        additionalProperties: false,
        description: "The back of a book.\n  It bears the title.",
        properties: {
          size: { $ref: "#/$defs/Size", default: "large", description: "How wide" },
          label: { anyOf: [{ type: "string" }, { type: "null" }], default: null, description: "What it says", title: "Label" },
          marks: { description: "Stamps", items: { type: "string" }, title: "Marks", type: "array" },
          pages: { minimum: 1, title: "Pages", type: "integer" },
        },
        required: ["pages"],
        title: "Spine",
        type: "object",
      },
    });
    expect(Object.keys(schema?.parameters ?? {})).toEqual(["$defs", "properties", "required", "title", "type"]);
  });

  it("names unsupported tools, with file and line", async () => {
    const { unread } = await prepareData({ from, to });
    expect(unread.map(({ name, reason }) => `${name}: ${reason.replace(/:\d+:/, ":LINE:")}`)).toEqual([
      "circle: src/tau2/domains/mock/tools.py:LINE: this name is defined by itself",
      "computed: src/tau2/domains/mock/tools.py:LINE: this value is computed at run time and cannot be read",
      "beyond: src/tau2/domains/mock/tools.py:LINE: the type Unheard cannot be written as a JSON Schema",
    ]);
  });

  it("finds the prompts by their location, and lists the missing ones", async () => {
    expect((await prepareData({ from, to })).ownPrompts).toEqual(["judge"]);
    expect(json("prompts.json")).toEqual({
      "agent.librarian.LIBRARIAN_INSTRUCTION": "You are a librarian.\nFollow the {policy}.",
      "agent.librarian.SYSTEM_PROMPT": "<a>You are a librarian.\nFollow the {policy}.</a>",
      "agent.llm_agent.AGENT_INSTRUCTION": "Serve readers.",
      "agent.llm_agent.AGENT_SOLO_INSTRUCTION": "\nServe the ticket, then call {stop_tool}.\n",
      "agent.librarian.Judge.ask.user_prompt": '\n            Judge {transcript["text"]} fairly.\n            ',
    });
  });

  it.each(["gnu", "pax"])("reads an archive (%s) as it reads the directory", async (format) => {
    const file = archive(format);
    const unpacked = await prepareData({ from, to });
    expect(unpacked.hashes[LONG.replace("data/tau2/domains/", "")]).toBeDefined();
    const packed = await prepareData({ from: file, to: join(root, "other") });
    expect(packed).toEqual({ ...unpacked, to: join(root, "other") });
  });

  it("refuses an archive with paths that leave it", async () => {
    const file = join(root, "evil.tar.gz");
    execFileSync("tar", ["-czPf", file, "--transform=s,notes/deep,../../../../../deep,", "-C", root, "tiny-benchmark-1.0"]);
    await expect(prepareData({ from: file, to })).rejects.toThrow("leads out of it");
  });

  it("fetches an archive, and reports a server's error", async () => {
    const file = archive("gnu");
    const server = createServer((request, response) => {
      if (request.url === "/tiny.tar.gz") response.end(readFileSync(file));
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      expect((await prepareData({ from: `${url}/tiny.tar.gz`, to })).tools).toEqual({ mock: 7 });
      await expect(prepareData({ from: `${url}/gone.tar.gz`, to })).rejects.toThrow("answered 404");
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("writes nothing if a hash is not the expected one", async () => {
    const { hashes } = await prepareData({ from, to: join(root, "other") });
    await expect(prepareData({ from, to, hashes: { ...hashes, "mock/db.json": "00" } })).rejects.toThrow(
      /mock\/db\.json has sha256 .*, expected 00/,
    );
    await expect(prepareData({ from, to, hashes: { "mock/none.json": "00" } })).rejects.toThrow("mock/none.json is missing");
    expect(existsSync(to)).toBe(false);
    await prepareData({ from, to, hashes });
  });

  it("names the files that differ from the known revision, and in strict mode writes nothing", async () => {
    await expect(prepareData({ from, to, isStrict: true })).rejects.toThrow(/is not revision a2c0247 of the benchmark; .*mock\/db\.json/);
    expect(readdirSync(root)).toEqual(["tiny-benchmark-1.0"]);
    rmSync(join(from, "data/tau2/domains/mock/split_tasks.json"));
    const { differing, absent } = await prepareData({ from, to });
    expect(differing).toContain("mock/db.json");
    expect(differing).not.toContain("mock/notes/deep.md");
    expect(absent).toEqual(["mock/split_tasks.json"]);
  });

  it("replaces a domain as a whole, and keeps the others", async () => {
    await prepareData({ from, to });
    const others = { "airline/db.json": "{}", "schemas/airline.json": "[]", "mock/old.md": "old" };
    writeFiles(to, others);
    writeFiles(to, { "hashes.json": JSON.stringify({ ...(json("hashes.json") as object), "airline/db.json": "11", "mock/old.md": "22" }) });
    writeFiles(from, { "data/tau2/domains/mock/policy.md": "Be kinder.\n" });
    const { hashes } = await prepareData({ from, to });
    expect(readFileSync(join(to, "mock/policy.md"), "utf8")).toBe("Be kinder.\n");
    expect(existsSync(join(to, "mock/old.md"))).toBe(false);
    expect(existsSync(join(to, "schemas/airline.json"))).toBe(true);
    expect(json("hashes.json")).toEqual({ "airline/db.json": "11", ...hashes });
    expect(readdirSync(root).sort()).toEqual(["data", "tiny-benchmark-1.0"]);
  });

  it("refuses a directory that it did not create", async () => {
    writeFiles(to, { "thesis.md": "years of work\n" });
    await expect(prepareData({ from, to })).rejects.toThrow("contains other files than prepared data");
    await expect(prepareData({ from, to: join(to, "thesis.md") })).rejects.toThrow("is not a directory");
    expect(readdirSync(to)).toEqual(["thesis.md"]);
  });

  it("follows a symbolic link to the directory, and keeps the link", async () => {
    mkdirSync(join(root, "disk"));
    symlinkSync("disk", to);
    await prepareData({ from, to });
    await prepareData({ from, to });
    expect(lstatSync(to).isSymbolicLink()).toBe(true);
    expect(existsSync(join(root, "disk/mock/db.json"))).toBe(true);
  });

  it("names missing files and classes", async () => {
    await expect(prepareData({ from: join(root, "nowhere"), to })).rejects.toThrow(/nowhere does not exist/);
    await expect(prepareData({ from: root, to })).rejects.toThrow("neither a checkout of the benchmark");
    await expect(prepareData({ from: join(from, "LICENSE"), to })).rejects.toThrow("is not a .tar.gz archive");
    await expect(prepareData({ from, to, domains: ["airline"] })).rejects.toThrow("has no data of airline");
    await expect(prepareData({ from, to, domains: ["zoo"] })).rejects.toThrow("there is no domain zoo");
    writeFiles(from, { "src/tau2/domains/mock/user_tools.py": "class Other:\n    pass\n" });
    await expect(prepareData({ from, to })).rejects.toThrow("declares no class MockUserTools");
    rmSync(join(from, "data/tau2/domains/mock/tasks.json"));
    await expect(prepareData({ from, to })).rejects.toThrow("lacks data/tau2/domains/mock/tasks.json");
  });
});

describeNeeding("tau2-data", "the benchmark's own files", () => {
  it("are those of the known revision", async () => {
    const own = (folder: string, place: string) => {
      for (const name of readdirSync(join(tau2Path, "data", folder)))
        writeFiles(from, { [`data/tau2/${place}/${name}`]: readFileSync(join(tau2Path, "data", folder, name), "utf8") });
    };
    own("mock", "domains/mock");
    own("user_simulator", "user_simulator");
    const { differing, absent } = await prepareData({ from, to, domains: ["mock"], isStrict: true });
    expect([...differing, ...absent]).toEqual([]);
    const hashOf = (path: string) =>
      createHash("sha256")
        .update(readFileSync(join(tau2Path, "data", path)))
        .digest("hex");
    expect(Object.fromEntries(Object.keys(knownHashes).map((path) => [path, hashOf(path)]))).toEqual(knownHashes);
  });
});
