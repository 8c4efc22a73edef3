/** A member of a `str` enum: equal to its value, but printed as `Class.MEMBER`. Members are singletons. */
export class PyEnum {
  readonly type: string;
  readonly name: string;
  readonly value: string;
  constructor(type: string, name: string, value: string) {
    this.type = type;
    this.name = name;
    this.value = value;
  }
}

export type Enumeration<Names extends string> = { readonly [Name in Names]: PyEnum };

/** `const Level = enumeration("Level", { LOW: "low" })`, then `Level.LOW`; members keep their order. */
export function enumeration<const Values extends Readonly<Record<string, string>>>(
  type: string,
  values: Values,
): Enumeration<keyof Values & string> {
  const members = Object.entries(values).map(([name, value]) => [name, new PyEnum(type, name, value)]);
  return Object.freeze(Object.fromEntries(members));
}
