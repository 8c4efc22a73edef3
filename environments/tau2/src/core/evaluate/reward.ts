import type { Assertion } from "../environment.ts";
import type { GoldenAction, RewardType } from "../tasks.ts";
import type { ToolKind } from "../tools/tool.ts";

export interface AssertionCheck {
  readonly env_assertion: Assertion;
  readonly met: boolean;
  readonly reward: number;
}

export interface ActionCheck {
  readonly action: GoldenAction;
  readonly action_match: boolean;
  readonly action_reward: number;
  readonly tool_type: ToolKind | null;
}

export interface CommunicateCheck {
  readonly info: string;
  readonly met: boolean;
  readonly justification: string;
}

export interface NlCheck {
  readonly nl_assertion: string;
  readonly met: boolean;
  readonly justification: string;
}

export type Breakdown = { readonly [Type in RewardType]?: number };

/** The result of one component, or of all; field names are those of stored records. */
export interface RewardInfo {
  readonly reward: number;
  readonly db_check?: { readonly db_match: boolean; readonly db_reward: number };
  readonly env_assertions?: readonly AssertionCheck[];
  readonly action_checks?: readonly ActionCheck[] | null;
  readonly nl_assertions?: readonly NlCheck[] | null;
  readonly communicate_checks?: readonly CommunicateCheck[] | null;
  readonly reward_basis?: readonly RewardType[] | null;
  readonly reward_breakdown?: Breakdown | null;
  readonly info?: Readonly<Record<string, unknown>> | null;
}

/** An episode that cannot be scored, and why. It is neither a success nor a failure. */
export interface Unscored {
  readonly reward: null;
  readonly reason: string;
}

export const asReward = (isMet: boolean): number => (isMet ? 1 : 0);
