// Renders templates as Go does: a task as JSON on stdin, a list with the text or "error" for each file on stdout.
//
// Named templates are rendered first; what they become is defined, with a line end before it and no white space after it, and the
// files are rendered with those definitions. A task for Nstance has the functions of text/template alone, and missing keys are empty.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"text/template"

	"github.com/Masterminds/sprig"
)

type task struct {
	Values    map[string]interface{}
	Templates map[string]string
	Files     []string
	Nstance   bool
}

func render(text string, defined []string, work task) (string, error) {
	empty := template.New("").Option("missingkey=error").Funcs(sprig.TxtFuncMap())
	if work.Nstance {
		empty = template.New("").Option("missingkey=zero")
	}
	parsed, err := empty.Parse(text)
	for _, definition := range defined {
		if err == nil {
			parsed, err = parsed.Parse(definition)
		}
	}
	var out bytes.Buffer
	if err == nil {
		err = parsed.Execute(&out, work.Values)
	}
	return out.String(), err
}

func main() {
	var work task
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		panic(err)
	}
	var defined []string
	for name, text := range work.Templates {
		out, err := render(text, nil, work)
		if err != nil {
			panic(err)
		}
		defined = append(defined, fmt.Sprintf("{{define %q}}\n%s\n{{- end}}", name, out))
	}
	results := make([]string, len(work.Files))
	for at, text := range work.Files {
		out, err := render(text, defined, work)
		if err != nil {
			out = "error"
		}
		results[at] = out
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		panic(err)
	}
}
