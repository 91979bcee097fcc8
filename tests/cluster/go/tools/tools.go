//go:build tools

// Package tools names the commands that tests on a cluster need besides Kubernetes.
package tools

import (
	_ "github.com/rancher/local-path-provisioner"
	_ "helm.sh/helm/v3/cmd/helm"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
