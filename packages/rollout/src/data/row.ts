/** One row of an export. */
export type Row = Readonly<Record<string, unknown>>;

/** Why a trajectory that the filters kept has no row in a format. */
export type Skipped = "no agent message" | "no token ids" | "turns do not alternate" | "no pair in its group" | "same task";
