import type { Trajectory } from "@aenv/contract";

/** What one agent did in an episode: the whole trajectory, or the part of one role. */
export interface Sample extends Trajectory {
  /** Absent in an environment without roles. */
  readonly role?: string;
}

/**
 * The trajectories with one sample for each trainable role. Ids and groups have the role in them: roles are compared with themselves only,
 * because a role may be worth more than another.
 */
export async function* samplesOf(all: AsyncIterable<Trajectory>): AsyncGenerator<Sample> {
  for await (const one of all) yield* samplesIn(one);
}

/** The samples of one trajectory: itself, or those of its trainable roles. */
export function samplesIn(trajectory: Trajectory): Sample[] {
  const { roles, ...whole } = trajectory;
  if (roles === undefined) return [trajectory];
  return Object.entries(roles).flatMap(([role, own]): Sample[] => {
    if (!own.trainable) return [];
    const { messages, tools, offered_tools, conversations, outcome, stop_reason, truncated, usage, cost } = own;
    return [
      {
        ...whole,
        role,
        id: ofRole(whole.id, role),
        group: whole.group && { ...whole.group, id: ofRole(whole.group.id, role) },
        messages,
        tools,
        ...(offered_tools && { offered_tools }),
        ...(conversations && { conversations }),
        outcome,
        stop_reason,
        truncated,
        usage,
        cost,
        steps: whole.steps.filter((step) => step.role === role),
        turns: whole.turns.filter((turn) => turn.role === role),
        provenance: { ...whole.provenance, agent: own.agent, agent_settings: own.agent_settings, model: own.model },
      },
    ];
  });
}

/** The name of what belongs to one role of a thing. */
export function ofRole(id: string, role: string): string {
  return `${id}#${role}`;
}
