//go:build tools

// Package tools names the commands that a cluster for tests is built from.
package tools

import _ "github.com/rancher/local-path-provisioner"
