import { kit } from "./kit/suite.ts";
import { platform } from "./platform/suite.ts";
import type { Suite } from "./suite.ts";
import { tau2 } from "./tau2/suite.ts";

/** Every suite, in the order in which a full run takes them. */
export const suites: readonly Suite[] = [kit, platform, tau2];
