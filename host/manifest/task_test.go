package manifest

import (
	"maps"
	"os"
	"testing"
)

func TestTask(t *testing.T) {
	data, err := os.ReadFile("testdata/good/task.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read("skill.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Task{}
	for _, tool := range s.Tools {
		got[tool.Name] = tool.Task
	}
	if want := map[string]Task{"build": {When: "long"}, "deploy": {When: "required", AskFirst: true}, "report": {When: "optional"}, "status": {}}; !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
