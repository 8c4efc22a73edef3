import type { Check } from "./check.ts";
import { episodeChecks } from "./episodes.ts";
import { hostileChecks } from "./hostile.ts";
import { hostChecks } from "./hosts.ts";
import { playChecks } from "./play.ts";
import { roleChecks } from "./roles.ts";
import { toolChecks } from "./tools.ts";

/** Tools, then episodes, then what is played, then what breaks a program. */
const [health, initialize, list, ...refusals] = toolChecks as readonly [Check, Check, Check, ...Check[]];
export const checks: readonly Check[] = [
  health,
  initialize,
  list,
  ...episodeChecks,
  ...refusals,
  ...playChecks,
  ...roleChecks,
  ...hostChecks,
  ...hostileChecks,
];
