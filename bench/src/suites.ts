import { agents } from "./agents/suite.ts";
import { benchmarks } from "./benchmarks/suite.ts";
import { hostile } from "./hostile/suite.ts";
import { kit } from "./kit/suite.ts";
import { kubernetes, kubernetesScale } from "./kubernetes/suite.ts";
import { platform } from "./platform/suite.ts";
import { workers } from "./platform/workers.ts";
import { rollout } from "./rollout/suite.ts";
import { sandboxes } from "./sandboxes/suite.ts";
import type { Suite } from "./suite.ts";
import { tau2 } from "./tau2/suite.ts";

/** All suites, in the order of a full run. */
export const suites: readonly Suite[] = [
  kit,
  platform,
  workers,
  rollout,
  agents,
  hostile,
  sandboxes,
  kubernetes,
  kubernetesScale,
  tau2,
  benchmarks,
];
