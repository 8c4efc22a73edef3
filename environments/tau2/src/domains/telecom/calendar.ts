import { PyDate } from "../../python/values/datetime.ts";

/** The domain's clock stands still: every tool acts on this day. */
export const TODAY = new PyDate(2025, 2, 25);

export const CYCLE_END = new PyDate(2025, 2, 28);

/** Last month's end: when a contract that is made to have ended did. */
export const LAST_MONTH_END = new PyDate(2025, 1, 31);

/** A bill that is still being written is for the month to come. */
export const NEXT_PERIOD = periodOf(new PyDate(2025, 3, 1), new PyDate(2025, 3, 31));

/** A bill that is overdue is for the month that has passed. */
export const LAST_PERIOD = periodOf(new PyDate(2025, 1, 1), LAST_MONTH_END);

function periodOf(start: PyDate, end: PyDate) {
  return { period_start: start, period_end: end, issue_date: start, due_date: start.addDays(14) };
}
