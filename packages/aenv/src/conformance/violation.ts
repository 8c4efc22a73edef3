/** The instance did not do what the contract says. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** The environment does not offer what is checked, which it need not. */
export class NotOffered extends Error {
  override readonly name = "NotOffered";
}
