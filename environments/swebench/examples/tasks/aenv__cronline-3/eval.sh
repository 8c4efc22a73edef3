#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
git status
git show
git -c core.fileMode=false diff aeb7e21a7c8e4714230f63b3faf605c468832ad4
git checkout aeb7e21a7c8e4714230f63b3faf605c468832ad4 tests/test_fields.py tests/test_next.py
git apply -v - <<'EOF_114329324912'
diff --git a/tests/test_fields.py b/tests/test_fields.py
index 8c4b7b5..4e903c2 100644
--- a/tests/test_fields.py
+++ b/tests/test_fields.py
@@ -17,6 +17,21 @@ def test_minutes(text, values):
     assert parse_field(text, 0, 59) == values
 
 
+@pytest.mark.parametrize(
+    "text, low, high, values",
+    [
+        ("10-40/15", 0, 59, {10, 25, 40}),
+        ("*/10", 1, 31, {1, 11, 21, 31}),
+    ],
+)
+def test_steps_are_counted_from_the_first_number(text, low, high, values):
+    assert parse_field(text, low, high) == values
+
+
+def test_steps_from_a_number_go_on_to_the_end():
+    assert parse_field("50/5", 0, 59) == {50, 55}
+
+
 @pytest.mark.parametrize("text", ["", "60", "9-5", "x", "*/0", "*/x", "1-"])
 def test_refused(text):
     with pytest.raises(ValueError):
diff --git a/tests/test_next.py b/tests/test_next.py
index 23dd3bc..ce20a6f 100644
--- a/tests/test_next.py
+++ b/tests/test_next.py
@@ -13,3 +13,7 @@ def test_leap_day():
 
 def test_dates_that_never_come():
     assert Schedule("0 0 31 2 *").next(datetime(2024, 3, 1)) is None
+
+
+def test_every_second_day():
+    assert Schedule("0 6 */2 * *").next(datetime(2024, 3, 1, 7)) == datetime(2024, 3, 3, 6)

EOF_114329324912
: '>>>>> Start Test Output'
pytest -rA tests/test_fields.py tests/test_next.py
: '>>>>> End Test Output'
git checkout aeb7e21a7c8e4714230f63b3faf605c468832ad4 tests/test_fields.py tests/test_next.py
