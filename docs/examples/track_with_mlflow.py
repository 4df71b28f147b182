"""The scores of a model in an experiment of MLflow."""

import mlflow

import qabias

mlflow.set_experiment("bias")
with mlflow.start_run():
    qabias.run("bbq", model="baseline:stereotyped", config="Age", limit=400)
