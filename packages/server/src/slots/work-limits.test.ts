import { expect, it } from "vitest";
import { readServerConfig } from "../config/config.ts";
import { workLimits } from "./work-limits.ts";

const starts = (elsewhere: boolean, settings: Readonly<Record<string, unknown>>) => {
  const config = readServerConfig({ flags: settings, variables: {} });
  const { "process starts": processes, "task sandboxes": tasks } = workLimits(config, { elsewhere }, 2);
  return [processes.atOnce, processes.aheadAtOnce, tasks.atOnce];
};

it("starts on this machine are limited by its cores, those elsewhere by the setting", () => {
  expect(starts(false, { startsAtOnce: 40 })).toEqual([4, 1, 8]);
  expect(starts(true, { startsAtOnce: 40, poolMax: 6 })).toEqual([40, 6, 40]);
  expect(starts(true, { startsAtOnce: 4, poolMax: 0 })).toEqual([4, 1, 4]);
});

it("one owner's rollouts fill the places of the setting, and each other owner has a sixteenth beyond them", () => {
  const rollouts = (rolloutsAtOnce: number) =>
    workLimits(readServerConfig({ flags: { rolloutsAtOnce }, variables: {} }), { elsewhere: false }, 2).rollouts;
  expect(rollouts(256)).toEqual({ atOnce: 256, reserve: { places: 256, perOwner: 16 } });
  expect(rollouts(1)).toEqual({ atOnce: 1, reserve: { places: 1, perOwner: 1 } });
});
