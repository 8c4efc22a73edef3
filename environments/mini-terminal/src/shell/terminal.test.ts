import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listProcesses } from "./processes.ts";
import type { CommandResult } from "./session.ts";
import { Terminal } from "./terminal.ts";

const never = new AbortController().signal;
const OUTPUT_BYTES = 2_000;

describe("a terminal", { timeout: 60_000 }, () => {
  let terminal: Terminal;
  beforeAll(async () => {
    terminal = await Terminal.open({ variables: { COLOR: "blue" }, outputBytes: OUTPUT_BYTES });
  }, 60_000);
  afterAll(() => terminal?.close());

  const run = (command: string, { seconds = 50, session = "main", signal = never } = {}): Promise<CommandResult> =>
    terminal.run(command, { timeoutMs: seconds * 1_000, session, signal });
  const output = async (command: string) => (await run(command)).output;

  it("returns standard output and standard error in order, and the exit code", async () => {
    const result = await run("echo one; echo two >&2; echo three; (exit 3)");
    expect(result).toEqual({
      output: "one\ntwo\nthree\n",
      cutBytes: 0,
      exitCode: 3,
      hasTimedOut: false,
      durationMs: expect.any(Number),
      note: null,
    });
    expect((await run("nosuchcommand")).exitCode).toBe(127);
    expect((await run("sh -c 'kill -9 $$'")).exitCode).toBe(137);
    expect((await run("")).exitCode).toBe(0);
    expect((await run("# only a comment")).exitCode).toBe(0);
  });

  it("keeps the folder, variables, functions, options and background jobs", async () => {
    await run("mkdir -p inner && cd inner; number=5; hello() { echo hello $1; }; shopt -s nullglob; sleep 50 & job=$!");
    expect(await output("basename $PWD; echo $number; hello you; echo *.none; kill $job && echo was running")).toBe(
      "inner\n5\nhello you\n\nwas running\n",
    );
    await run("cd ..");
  });

  it("has the variables that it was given, and none of this process", async () => {
    process.env.MINI_TERMINAL_SECRET = "quiet";
    const other = await Terminal.open({ variables: {}, outputBytes: OUTPUT_BYTES });
    try {
      const { output: variables } = await other.run("env", { timeoutMs: 50_000, session: "main", signal: never });
      expect(variables).not.toContain("quiet");
    } finally {
      delete process.env.MINI_TERMINAL_SECRET;
      await other.close();
    }
    expect(await output("echo $COLOR; cd; pwd")).toBe(`blue\n${realpathSync(terminal.workFolder)}\n`);
  });

  it("runs any text as one command that cannot reach the next", async () => {
    expect((await run("echo 'open")).output).toContain("unexpected EOF");
    expect((await run("if true; then")).exitCode).not.toBe(0);
    expect((await run("cat <<END\nno end")).output).toContain("no end");
    expect(await output("echo a \\")).toBe("a\n");
    expect(await output("echo fine")).toBe("fine\n");
  });

  it("returns any text that a command prints, and takes none of it for the end", async () => {
    const text = fc.string({ unit: fc.oneof(fc.constantFrom("\n", "'", "\\", "$", "`", "end-", "\u001b[0m", "é", "😀"), fc.string()) });
    await fc.assert(
      fc.asyncProperty(
        text.filter((each) => !/\0|[\ud800-\udfff]/u.test(each)),
        fc.integer({ min: 0, max: 255 }),
        async (printed, code) => {
          const result = await run(`printf %s '${printed.replaceAll("'", "'\\''")}'; (exit ${code})`);
          expect([result.output, result.exitCode]).toEqual([printed, code]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("gives commands an empty input, so that none of them waits for it or reads the next command", async () => {
    expect(await output("cat; read -r line; echo status $?; wc -c")).toBe("status 1\n0\n");
  });

  it("gives commands a pipe that they can open by name, and none of its own descriptors", async () => {
    expect(
      await output("echo out > /dev/stdout; echo err > /dev/stderr; for fd in 98 99; do [ -e /proc/self/fd/$fd ] || echo closed; done"),
    ).toBe("out\nerr\nclosed\nclosed\n");
  });

  it("keeps descriptors that a command opens, and its own output if a command redirects it", async () => {
    await run("exec 3>kept.txt; exec >/dev/null 2>&1");
    expect(await output("echo kept >&3; cat kept.txt")).toBe("kept\n");
  });

  it("shows bytes that are not text as replacement characters", async () => {
    expect(await output("printf 'a\\xff\\x00b\\n'")).toBe("a\ufffd\0b\n");
  });

  it("cuts the middle out of a long output, however fast it comes", async () => {
    const { output: shown, cutBytes } = await run("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last");
    expect(cutBytes).toBeGreaterThan(199_000_000);
    expect(shown).toMatch(/^first\nx+\n\[\.\.\. \d+ bytes cut out \.\.\.\]\nx+\nlast\n$/);
    expect(Buffer.byteLength(shown)).toBeLessThan(OUTPUT_BYTES + 100);
  });

  it.each([
    ["a program", "echo before; sleep 40; echo after", 130],
    ["a loop of the shell itself", "echo before; while :; do :; done", 130],
    ["a loop of programs", "echo before; while true; do sleep 0.1; done", 130],
    ["a pipe", "echo before; sleep 40 | cat; echo after", 130],
    ["a program that ignores interrupts", "echo before; bash -c 'trap \"\" INT; sleep 40'; true", 0],
    ["a loop of programs that handle interrupts", "echo before; while true; do bash -c 'trap : INT; sleep 0.3'; done", 130],
    ["many short programs", "echo before; while true; do /bin/true; done", 130],
    ["a program in another process group", "echo before; setsid --wait sleep 40; true", 0],
  ])("interrupts %s at the timeout, returns its output so far, and keeps the session", async (_, command, exitCode) => {
    await run("kept=yes; cd /; sleep 50 & background=$!");
    const result = await run(command, { seconds: 1 });
    expect(result).toMatchObject({ output: expect.stringMatching(/^before\n/), hasTimedOut: true, note: null });
    expect(result.output).not.toContain("after");
    if (exitCode !== 0) expect(result.exitCode).toBe(exitCode);
    expect(await output("echo $kept; pwd; kill $background && echo background")).toBe("yes\n/\nbackground\n");
  });

  it("skips the rest of a command whose program had to be killed, also if the command handles interrupts", async () => {
    const stubborn = "bash -c 'trap \"\" INT; echo before; sleep 40'";
    const result = await run(`cd; rm -f after; trap 'echo handled' INT; ${stubborn}; touch after`, { seconds: 1 });
    expect(result).toMatchObject({ output: expect.stringMatching(/^before\n/), hasTimedOut: true, note: null });
    expect(await output("ls after")).toContain("No such file");
  });

  it("starts a new shell in the same folder when one cannot be interrupted", async () => {
    const result = await run("cd; cd inner; lost=1; trap '' URG; trap '' INT; echo before; while :; do :; done", { seconds: 1 });
    expect(result).toMatchObject({ output: "before\n", exitCode: 137, hasTimedOut: true, note: expect.stringContaining("A new one") });
    expect(await output("basename $PWD; echo lost=$lost; cd ..")).toBe("inner\nlost=\n");
  });

  it.each([
    ["exit 3", 3],
    ["cd inner; exit 3", 3],
    ["set -e; cd inner; false; echo never", 1],
    ["cd inner; exec sh -c 'exit 7'", 7],
    ["cd inner; kill -9 $$", 137],
  ])("reports the exit code of '%s' and goes on with a new shell", async (command, exitCode) => {
    await run("cd; mkdir -p inner");
    const result = await run(command);
    expect(result).toMatchObject({ output: "", exitCode, hasTimedOut: false, note: expect.stringContaining("A new one was started") });
    if (command.includes("exit 3") || command.includes("set -e"))
      expect(await output("basename $PWD")).toBe(command.includes("inner") ? "inner\n" : "work\n");
    expect(await run("false; echo fine")).toMatchObject({ output: "fine\n", exitCode: 0, note: null });
  });

  it("starts a new shell where its folder was deleted", async () => {
    await run("mkdir gone && cd gone && rmdir ../gone; exit 0");
    expect(await output("basename $PWD")).toBe("work\n");
  });

  it("shows what background processes print between two commands with the next one", async () => {
    await run("(until [ -e go ]; do sleep 0.05; done; echo from the background; touch done) &");
    await run("touch go; until [ -e done ]; do sleep 0.05; done");
    expect(await output("rm go done; echo next")).toBe("next\n");
    await run("(until [ -e go ]; do sleep 0.05; done; echo late; touch done) &");
    expect(await output("touch go; until [ -e done ]; do sleep 0.05; done; rm go done")).toBe("late\n");
  });

  it("runs the commands of one session in order, and those of different sessions at the same time", async () => {
    const [first, second] = await Promise.all([run("sleep 0.3; echo first >> order"), run("echo second >> order; cat order; rm order")]);
    expect([first.output, second.output]).toEqual(["", "first\nsecond\n"]);
    // Each waits for the other.
    const meet = (own: string, other: string) =>
      run(`mine=${own}; touch ${own}; until [ -e ${other} ]; do sleep 0.05; done; echo met`, { session: own });
    expect((await Promise.all([meet("left", "right"), meet("right", "left")])).map(({ output: text }) => text)).toEqual(["met\n", "met\n"]);
    expect((await run("echo $mine", { session: "left" })).output).toBe("left\n");
    expect(terminal.sessions).toEqual(["main", "left", "right"]);
  });

  it("refuses more sessions than it can hold, and names them", async () => {
    const many = Array.from({ length: 14 }, (_, at) => run("true", { session: `many-${at}` }));
    const refused = (await Promise.allSettled(many)).filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(1);
    await expect(run("true", { session: "another" })).rejects.toThrow("there are 16 sessions already: main, left");
  });

  it("interrupts a command whose caller has gone, and does not run one that waits", async () => {
    const [running, waiting] = [new AbortController(), new AbortController()];
    const first = run("echo $BASHPID > pid; sleep 50; touch reached", { signal: running.signal });
    const second = run("touch reached", { signal: waiting.signal });
    await expect.poll(() => existsSync(join(terminal.workFolder, "pid")), { timeout: 20_000 }).toBe(true);
    waiting.abort(new Error("no longer wanted"));
    running.abort(new Error("gone"));
    await expect(first).rejects.toThrow("gone");
    await expect(second).rejects.toThrow("no longer wanted");
    expect(await output("rm -f pid; ls reached")).toContain("No such file");
  });

  it("ends all of its processes when it is closed, also those that have left their session, and deletes its folder", async () => {
    const other = await Terminal.open({ variables: {}, outputBytes: OUTPUT_BYTES });
    const start = "sleep 456 & (setsid sleep 456 &) ; env -i sleep 456 & nohup sleep 456 & disown -a; echo $$";
    const { output: pid } = await other.run(start, { timeoutMs: 50_000, session: "main", signal: never });
    const hanging = other.run("sleep 456", { timeoutMs: 50_000, session: "main", signal: never });
    hanging.catch(() => {});
    const folder = other.workFolder;
    await other.close();
    await expect(hanging).rejects.toThrow("the session was closed");
    expect(existsSync(folder)).toBe(false);
    const left = listProcesses().filter(({ session, pid: own }) => session === Number(pid) || own === Number(pid));
    expect(left).toEqual([]);
    await expect(other.run("true", { timeoutMs: 1_000, session: "new", signal: never })).rejects.toThrow("the terminal is closed");
  });

  it("says what is missing where there is no bash", async () => {
    const path = process.env.PATH;
    process.env.PATH = "/nonexistent";
    try {
      await expect(Terminal.open({ variables: {}, outputBytes: OUTPUT_BYTES })).rejects.toThrow("mini-terminal cannot");
    } finally {
      process.env.PATH = path;
    }
  });
});
