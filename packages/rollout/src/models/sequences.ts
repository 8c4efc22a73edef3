import type { TokenSequence, Turn, WeightSpan } from "@aenv/contract";

type TokenTurn = Pick<Turn, "node_id" | "weight_versions"> & {
  readonly prompt_token_ids: readonly number[];
  readonly completion_token_ids: readonly number[];
  readonly logprobs: readonly number[];
};

interface Growing {
  readonly prompt_length: number;
  readonly token_ids: number[];
  readonly loss_mask: (0 | 1)[];
  readonly logprobs: number[];
  readonly weight_versions: WeightSpan[];
  readonly turns: string[];
}

/**
 * The turns of an episode as token sequences for a trainer. While a prompt begins with exactly the tokens that are held already, its
 * new tokens are appended with mask 0 and the sampled ones with mask 1; otherwise a new sequence begins. Nothing is tokenised again,
 * and each sampled token is trained once. The turns of each role have sequences of their own.
 */
export function mergeTurns(turns: readonly Turn[]): TokenSequence[] {
  const byRole = Map.groupBy(turns, ({ role }) => role);
  return [...byRole].flatMap(([role, own]) => mergeTurnsOfOne(own).map((one) => ({ ...(role !== undefined && { role }), ...one })));
}

function mergeTurnsOfOne(turns: readonly Turn[]): TokenSequence[] {
  const sequences: Growing[] = [];
  for (const turn of turns) {
    if (!hasTokens(turn)) continue;
    const last = sequences.at(-1);
    const isContinued = last !== undefined && startsWith(turn.prompt_token_ids, last.token_ids);
    const sequence = isContinued ? last : newSequence(turn.prompt_token_ids.length);
    if (!isContinued) sequences.push(sequence);
    extend(sequence, turn);
  }
  return sequences;
}

function newSequence(promptLength: number): Growing {
  return { prompt_length: promptLength, token_ids: [], loss_mask: [], logprobs: [], weight_versions: [], turns: [] };
}

function extend(sequence: Growing, turn: TokenTurn): void {
  for (let at = sequence.token_ids.length; at < turn.prompt_token_ids.length; at++)
    push(sequence, turn.prompt_token_ids[at] as number, 0, 0);
  const offset = sequence.token_ids.length;
  for (const [at, id] of turn.completion_token_ids.entries()) push(sequence, id, 1, turn.logprobs[at] as number);
  for (const { version, start, end } of turn.weight_versions) {
    sequence.weight_versions.push({ version, start: offset + start, end: offset + end });
  }
  sequence.turns.push(turn.node_id);
}

function push(sequence: Growing, id: number, mask: 0 | 1, logprob: number): void {
  sequence.token_ids.push(id);
  sequence.loss_mask.push(mask);
  sequence.logprobs.push(logprob);
}

function hasTokens(turn: Turn): turn is Turn & TokenTurn {
  return turn.prompt_token_ids !== null && turn.completion_token_ids !== null && turn.logprobs !== null;
}

function startsWith(tokens: readonly number[], prefix: readonly number[]): boolean {
  return tokens.length >= prefix.length && prefix.every((id, at) => tokens[at] === id);
}
