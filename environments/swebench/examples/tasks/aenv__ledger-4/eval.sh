#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
git status
git show
git -c core.fileMode=false diff 39715cca0b770c31c1bf34020886be2c409b1a39
git checkout 39715cca0b770c31c1bf34020886be2c409b1a39 tests/test_amounts.py tests/test_journal.py
git apply -v - <<'EOF_114329324912'
diff --git a/tests/test_amounts.py b/tests/test_amounts.py
index cb26f05..9967e50 100644
--- a/tests/test_amounts.py
+++ b/tests/test_amounts.py
@@ -19,3 +19,13 @@ def test_format():
 
 def test_format_pads_cents():
     assert format_amount(7) == "0.07"
+
+
+@pytest.mark.parametrize("text, cents", [("-1.50", -150), ("-0.05", -5), ("-1,234.50", -123450)])
+def test_parse_negative(text, cents):
+    assert parse_amount(text) == cents
+
+
+def test_format_negative():
+    assert format_amount(-150) == "-1.50"
+    assert format_amount(-5) == "-0.05"
diff --git a/tests/test_journal.py b/tests/test_journal.py
index 83adb8b..ca1bfa0 100644
--- a/tests/test_journal.py
+++ b/tests/test_journal.py
@@ -15,3 +15,7 @@ def test_errors_name_the_line():
 
 def test_statement_of_whole_amounts():
     assert statement(read_journal("cash > rent 700")) == "cash -700.00\nrent 700.00"
+
+
+def test_statement_with_cents():
+    assert statement(read_journal("cash > rent 0.30")) == "cash -0.30\nrent 0.30"

EOF_114329324912
: '>>>>> Start Test Output'
pytest -rA tests/test_amounts.py tests/test_journal.py
: '>>>>> End Test Output'
git checkout 39715cca0b770c31c1bf34020886be2c409b1a39 tests/test_amounts.py tests/test_journal.py
