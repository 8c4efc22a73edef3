import { posix } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvalidValue } from "../fields/field.ts";
import { parseHosts } from "./hosts.ts";
import { parseLimits } from "./limits.ts";
import { parseService } from "./service.ts";
import { parseTmpfs } from "./tmpfs.ts";
import { mebibytesOf } from "./values.ts";
import { parseVolume } from "./volume.ts";

/** Undefined for a value that is refused. Anything but a refusal is a crash. */
function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof InvalidValue) return undefined;
    throw error;
  }
}

describe("a mount of a compose file", () => {
  const name = fc.constantFrom("a", "b.txt", "..", ".", "", "...", "~", "a b");
  const source = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => `./${names.join("/")}`);

  it("stays in the task's folder, or is refused, however its path is written", () => {
    fc.assert(
      fc.property(source, fc.boolean(), (given, isTable) => {
        const value = isTable ? { type: "bind", source: given, target: "/app" } : `${given}:/app`;
        const volume = attempt(() => parseVolume(value, "at"));
        if (given.split("/").includes("..")) expect(volume).toBeUndefined();
        else if (volume !== undefined) expect(posix.join("/task", volume.source ?? "..")).toMatch(/^\/task(?:\/|$)/);
      }),
    );
  });

  it("of the same folder is the same volume, so that services share it", () => {
    const all = ["./data:/a", "././data/:/b:ro", { type: "bind", source: "data", target: "/c", bind: { create_host_path: true } }];
    expect(all.map((value) => parseVolume(value, "at"))).toEqual([
      { name: "./data", source: "data", path: "/a", isReadOnly: false },
      { name: "./data", source: "data", path: "/b", isReadOnly: true },
      { name: "./data", source: "data", path: "/c", isReadOnly: false },
    ]);
    expect([".:/a", "./:/a"].map((value) => parseVolume(value, "at").source)).toEqual([".", "."]);
    expect(parseVolume("data:/a", "at").source).toBeNull();
  });
});

describe("limits of a service", () => {
  it("are read in every form of an amount of memory, rounded up to mebibytes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4_096 }), fc.constantFrom("m", "M", "mb", "MB", "MiB"), (amount, unit) => {
        expect(mebibytesOf(`${amount}${unit}`, "at")).toBe(amount);
        expect(mebibytesOf(String(amount * 2 ** 20), "at")).toBe(amount);
        expect(mebibytesOf(`${amount / 4}g`, "at")).toBe(amount * 256);
      }),
    );
    expect(["512M", "1.5g", "2GiB", "1536k", "1b"].map((text) => mebibytesOf(text, "at"))).toEqual([512, 1_536, 2_048, 2, 1]);
    for (const text of ["", "lots", "1.5x", "-1m", "1bib"]) expect(() => mebibytesOf(text, "at"), text).toThrow("an amount of memory");
  });

  it("are those of deploy.resources.limits, else of the keys beside it", () => {
    const limits = { memory: "512M", cpus: "0.50", pids: 100 };
    expect(parseLimits({ mem_limit: "1g", cpus: 2, pids_limit: 5, deploy: { resources: { limits } } }, "s")).toEqual({
      memoryMb: 512,
      cpus: 0.5,
      processes: 100,
    });
    expect(parseLimits({ mem_limit: "1.5g", cpus: 2, pids_limit: "5" }, "s")).toEqual({ memoryMb: 1_536, cpus: 2, processes: 5 });
    expect(parseLimits({ mem_limit: 0, pids_limit: -1 }, "s")).toEqual({ memoryMb: null, cpus: null, processes: null });
    expect(() => parseLimits({ cpus: "many" }, "s")).toThrow("s.cpus: 'many' is not a number above 0");
    expect(() => parseLimits({ pids_limit: 1.5 }, "s")).toThrow("s.pids_limit: '1.5' is not a whole number");
  });
});

describe("extra hosts of a service", () => {
  const host = fc.record({
    name: fc.domain(),
    address: fc.oneof(fc.ipV4(), fc.ipV6()),
  });

  it("are lines of /etc/hosts, whether they are a list or a table", () => {
    fc.assert(
      fc.property(fc.uniqueArray(host, { selector: ({ name }) => name, maxLength: 4 }), fc.constantFrom(":", "="), (hosts, separator) => {
        expect(
          parseHosts(
            hosts.map(({ name, address }) => `${name}${separator}${address}`),
            "at",
          ),
        ).toEqual(hosts);
        expect(parseHosts(Object.fromEntries(hosts.map(({ name, address }) => [name, address])), "at")).toEqual(hosts);
      }),
    );
    expect(parseHosts(["a:[::1]"], "at")).toEqual([{ name: "a", address: "::1" }]);
  });

  it("without the machine, which sandboxes do not reach", () => {
    expect(parseHosts(["host.docker.internal:host-gateway", "a:192.0.2.1"], "at")).toEqual([{ name: "a", address: "192.0.2.1" }]);
  });

  it("are refused without a name or an address, and cannot add lines", () => {
    for (const entry of ["a", "a:b", ":192.0.2.1", "a b:192.0.2.1", "a\nb:192.0.2.1", "a:192.0.2.1\n::1 b"])
      expect(() => parseHosts([entry], "at"), entry).toThrow("at: ");
    fc.assert(fc.property(fc.string({ unit: "binary" }), (entry) => void attempt(() => parseHosts([entry], "at"))));
  });
});

describe("folders in memory of a service", () => {
  it("have the options of Docker", () => {
    const options = fc.record({
      sizeMb: fc.integer({ min: 1, max: 4_096 }),
      mode: fc.integer({ min: 1, max: 0o7777 }),
      isExecutable: fc.boolean(),
    });
    fc.assert(
      fc.property(options, ({ sizeMb, mode, isExecutable }) => {
        const text = `/run/x:size=${sizeMb}m,rw,mode=${mode.toString(8)}${isExecutable ? ",exec" : ",noexec"}`;
        expect(parseTmpfs(text, "at")).toEqual({ path: "/run/x", sizeMb, mode, isExecutable });
      }),
    );
    expect(parseTmpfs("/run/", "at")).toEqual({ path: "/run", sizeMb: null, mode: 0o1777, isExecutable: false });
    for (const text of ["run", "/", "/run:size=much", "/run:uid=5", "/run:mode=9"])
      expect(() => parseTmpfs(text, "at"), text).toThrow("at");
  });

  it("are one text, a list, or volumes of this type", () => {
    const volume = { type: "tmpfs", target: "/c", tmpfs: { size: 2 ** 21, mode: 0o700 } };
    const { tmpfs, volumes } = parseService("s", { tmpfs: "/a", volumes: [volume, "data:/d"] });
    expect(tmpfs).toMatchObject([{ path: "/a" }, { path: "/c", sizeMb: 2, mode: 0o700 }]);
    expect(volumes).toMatchObject([{ name: "data" }]);
    expect(parseService("s", { tmpfs: ["/a", "/b"] }).tmpfs.map(({ path }) => path)).toEqual(["/a", "/b"]);
  });
});
