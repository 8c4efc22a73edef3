import { hash } from "node:crypto";
import { PlatformError, type Turn } from "@aenv/contract";
import { type Agent, isProgram, type TurnAgent } from "./agent.ts";
import { AgentError } from "./failure.ts";

/** An agent that plays a role. */
export interface RolePlayer {
  readonly agent: TurnAgent;
  readonly model: string | null;
  /** Whether its turns are training data. Those of a frozen opponent are not. */
  readonly trainable: boolean;
  /** The cost of its turns, if its model has prices of its own. */
  readonly costOf?: (turns: readonly Turn[]) => number | null;
}

/** Who plays the roles of an environment. */
export interface Players {
  /** The players of each role. Of several, one is drawn for each episode, by its seed. */
  readonly roles: Readonly<Record<string, readonly RolePlayer[]>>;
  /** Whether players exchange their roles from seed to seed. */
  readonly rotates: boolean;
}

/** The player of a role in one episode. */
export interface AssignedPlayer extends RolePlayer {
  /** The role for which it was given: another one than it plays if players exchange their roles. */
  readonly player: string;
  readonly seed: number;
}

/** The agent that plays every role of an environment for which no players were given. */
export function inEveryRole(agent: Agent, model: string | null, roles: readonly string[]): Players {
  if (isProgram(agent)) {
    throw new AgentError(
      `the agent '${agent.name}' is a program, which plays environments without roles; the environment has the roles ${roles.join(", ")}`,
    );
  }
  const player: RolePlayer = { agent, model, trainable: true };
  return { roles: Object.fromEntries(roles.map((role) => [role, [player]])), rotates: false };
}

/** Throws unless there are players for exactly the roles that an environment has. */
export function requireRoles(players: Pick<Players, "roles">, roles: readonly string[]): void {
  const problem = roleProblem(Object.keys(players.roles), roles);
  if (problem !== null) throw new PlatformError("request.invalid", problem);
}

/** Why these players do not fit the roles of an environment; null if they do. */
export function roleProblem(given: readonly string[], roles: readonly string[]): string | null {
  const list = `its roles are ${roles.join(", ")}`;
  if (roles.length === 0) return "the environment has no roles, so it is played by one agent and not by players";
  const unknown = given.find((role) => !roles.includes(role));
  if (unknown !== undefined) return `the environment has no role '${unknown}'; ${list}`;
  const missing = roles.find((role) => !given.includes(role));
  return missing === undefined ? null : `the role '${missing}' has no player; ${list}`;
}

/** Who plays which role in the episode with this seed, in the order of the roles. */
export function assignPlayers(
  { roles: given, rotates }: Players,
  roles: readonly string[],
  seed: number,
): ReadonlyMap<string, AssignedPlayer> {
  const shift = rotates ? ((seed % roles.length) + roles.length) % roles.length : 0;
  return new Map(
    roles.map((role, at) => {
      const player = roles[(at + shift) % roles.length] as string;
      const choice = given[player] ?? [];
      const drawn = choice[derivedSeed(seed, `player ${player}`) % choice.length] as RolePlayer;
      return [role, { ...drawn, player, seed: seedOfRole(seed, role) }];
    }),
  );
}

/** How the players of a run are named in its settings and trajectories: the same whoever was drawn. */
export function describePlayers({ roles, rotates }: Players): { readonly name: string; readonly settings: Record<string, unknown> } {
  const described = Object.entries(roles).map(([role, all]) => [
    role,
    all.map(({ agent, model, trainable }) => ({ agent: agent.name, settings: agent.settings, model, trainable })),
  ]);
  return { name: "players", settings: { players: Object.fromEntries(described), rotate: rotates } };
}

/** The models of the players, without repetition; null if there is none. */
export function modelsOf({ roles }: Pick<Players, "roles">): string | null {
  const models = new Set(Object.values(roles).flatMap((all) => all.flatMap(({ model }) => (model === null ? [] : [model]))));
  return models.size === 0 ? null : [...models].join(", ");
}

/** The seed of a role's agent: two agents that draw the same numbers would not play independently. */
export function seedOfRole(seed: number, role: string): number {
  return derivedSeed(seed, `role ${role}`);
}

function derivedSeed(seed: number, use: string): number {
  return hash("sha256", `${seed}\n${use}`, "buffer").readUInt32BE(0) >>> 1;
}
