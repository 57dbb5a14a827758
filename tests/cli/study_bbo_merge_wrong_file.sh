# What is no answer of the study is bad data, a file that is not there an error of input, each by
# its name.
echo '{"study": "ratio", "rows": []}' >ratio.json
n2ce study bbo --merge ratio.json; echo "exit $?"
echo '{"study": "bbo", "rows": [{"task": "brann"}]}' >task.json
n2ce study bbo --merge task.json; echo "exit $?"
echo '{"study": "bbo", "rows": [{"task": "branin", "method": "x", "seed": 0}]}' >method.json
n2ce study bbo --merge method.json; echo "exit $?"
echo '{"study": "bbo", "rows": [{"task": "branin", "method": "random", "seed": 0.5}]}' >seed.json
n2ce study bbo --merge seed.json; echo "exit $?"
echo '{"study": "bbo", "rows": [' >cut.json
n2ce study bbo --merge cut.json; echo "exit $?"
echo '{"study": "bbo", "rows": []}' >empty.json
n2ce study bbo --merge empty.json; echo "exit $?"
n2ce study bbo --merge nowhere.json; echo "exit $?"
n2ce study bbo --merge empty.json,; echo "exit $?"
n2ce study bbo --queries 4,2.5; echo "exit $?"
