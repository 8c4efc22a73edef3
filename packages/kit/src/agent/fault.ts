/** Why a message or a request about a task was refused. */
export type ConversationFaultKind = "task_not_found" | "task_ended" | "wrong_context" | "too_many";

export class ConversationFault extends Error {
  override readonly name = "ConversationFault";
  readonly kind: ConversationFaultKind;

  constructor(kind: ConversationFaultKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
