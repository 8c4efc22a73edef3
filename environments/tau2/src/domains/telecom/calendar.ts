import { PyDate } from "../../python/values/datetime.ts";

/** The domain has a fixed date: every tool acts on this day. */
export const TODAY = new PyDate(2025, 2, 25);

export const CYCLE_END = new PyDate(2025, 2, 28);

/** The end of the last month: the end date of contracts that `contract_ended` ends. */
export const LAST_MONTH_END = new PyDate(2025, 1, 31);

/** The period of a draft bill: the next month. */
export const NEXT_PERIOD = periodOf(new PyDate(2025, 3, 1), new PyDate(2025, 3, 31));

/** The period of an overdue bill: the last month. */
export const LAST_PERIOD = periodOf(new PyDate(2025, 1, 1), LAST_MONTH_END);

function periodOf(start: PyDate, end: PyDate) {
  return { period_start: start, period_end: end, issue_date: start, due_date: start.addDays(14) };
}
