import { expect, it } from "vitest";
import { readServerConfig } from "./config/config.ts";
import { openEngine } from "./engine.ts";

it.each([{ cpus: 2 }, { diskMb: 100 }, { processes: 50 }])(
  "the engine process refuses a limit that it cannot enforce: %o",
  async (limit) => {
    const config = readServerConfig({ flags: { home: "/nowhere", engine: "process", ...limit }, variables: {} });
    const ignore = () => undefined;
    const opening = openEngine(config, { runner: ["node"], log: ignore, onRefused: ignore, onLimit: ignore });
    await expect(opening).rejects.toThrow(
      `the setting ${Object.keys(limit)[0]} is ${Object.values(limit)[0]}, and the engine process cannot limit that`,
    );
  },
);
