"""skorch: a network as an estimator of scikit-learn, in a pipeline and a grid search."""

import torch
from numbers_made import array, fill, show
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from torch import nn


class Net(nn.Module):
    def __init__(self, outputs=3, width=6):
        super().__init__()
        self.layers = fill(nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, outputs)), 0.4)

    def forward(self, x):
        return self.layers(x)


X, y = array(30, 4).astype("float32"), array(30, low=0, high=3)
net = NeuralNetClassifier(
    Net, criterion=nn.CrossEntropyLoss, max_epochs=4, lr=0.1, verbose=0, train_split=None, iterator_train__shuffle=False
)
pipeline = make_pipeline(StandardScaler(), net).fit(X, y)
show("classifier", pipeline.predict(X), net.history[:, "train_loss"])
search = GridSearchCV(net, {"lr": [0.01, 0.3], "module__width": [4, 6]}, cv=2, scoring="accuracy").fit(X, y)
show("search", search.best_score_, search.best_params_["lr"], search.cv_results_["mean_test_score"])
regressor = NeuralNetRegressor(
    Net, module__outputs=1, max_epochs=3, verbose=0, train_split=None, optimizer=torch.optim.Adam
).fit(X, X[:, :1])
show("regressor", regressor.predict(X))
